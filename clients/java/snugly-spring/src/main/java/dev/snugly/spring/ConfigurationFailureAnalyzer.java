package dev.snugly.spring;

import dev.snugly.core.ConfigurationException;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;

/** Tells a wrong setting as Spring Boot tells its own: what it is and what to do, and no stack. */
final class ConfigurationFailureAnalyzer extends AbstractFailureAnalyzer<ConfigurationException> {
  private static final String ACTION =
      "Change the property that this is about (compressionLevel is snugly.compression-level), or the"
          + " application's own CompressionConfiguration.";

  @Override
  protected FailureAnalysis analyze(Throwable failure, ConfigurationException wrong) {
    return new FailureAnalysis(
        "Compression cannot be configured: " + wrong.getMessage(), ACTION, wrong);
  }
}
