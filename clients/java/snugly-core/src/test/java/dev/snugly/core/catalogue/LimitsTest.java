package dev.snugly.core.catalogue;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.google.gson.JsonObject;
import dev.snugly.core.Codec;
import dev.snugly.core.Dictionary;
import dev.snugly.testing.Vectors;
import org.junit.jupiter.api.Test;

/** Limits of values, dictionaries and catalogues. */
class LimitsTest {
  @Test
  void limitsAreThoseOfTheSpecification() {
    JsonObject own = new JsonObject();
    own.addProperty("shortest_compressed_value", Codec.LEAST_COMPRESSED);
    own.addProperty("dictionary_bytes", Dictionary.MAX_BYTES);
    own.addProperty("held_dictionaries", DictionaryCache.MOST_HELD);
    own.addProperty("unknown_ids_of_one_look_up", UnknownIds.MOST);
    JsonObject catalogue = new JsonObject();
    catalogue.addProperty("bytes", Catalogue.MAX_BYTES);
    catalogue.addProperty("active", Catalogue.MAX_ACTIVE);
    catalogue.addProperty("dictionaries", Catalogue.MAX_DICTIONARIES);
    catalogue.addProperty("forgotten", Catalogue.MAX_FORGOTTEN);
    own.add("catalogue", catalogue);
    assertEquals(Vectors.data("limits.json").toString(), own.toString());
  }
}
