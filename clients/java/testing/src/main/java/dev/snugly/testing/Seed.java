package dev.snugly.testing;

import net.jqwik.api.lifecycle.AroundPropertyHook;
import net.jqwik.api.lifecycle.PropagationMode;
import net.jqwik.api.lifecycle.PropertyExecutionResult;
import net.jqwik.api.lifecycle.PropertyExecutor;
import net.jqwik.api.lifecycle.PropertyLifecycleContext;

/**
 * Has each property tried with the same values each time: those of the seed that the system
 * property {@code snugly.seed} names. Without it, or with {@code random}, they are others.
 */
public final class Seed implements AroundPropertyHook {
  @Override
  public PropagationMode propagateTo() {
    return PropagationMode.ALL_DESCENDANTS;
  }

  @Override
  public PropertyExecutionResult aroundProperty(
      PropertyLifecycleContext context, PropertyExecutor property) {
    String seed = System.getProperty("snugly.seed", "random");
    if (!seed.equals("random") && context.attributes().seed().isEmpty()) {
      context.attributes().setSeed(seed);
    }
    return property.execute();
  }
}
