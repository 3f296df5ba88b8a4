package dev.snugly.fuzz;

import com.code_intelligence.jazzer.junit.FuzzTest;
import dev.snugly.core.catalogue.Catalogue;
import dev.snugly.core.catalogue.CatalogueException;

/** Foreign bytes are a catalogue or a typed error. */
class CatalogueFuzzTest {
  @FuzzTest(maxDuration = "10s")
  void anyDocumentIsACatalogueOrATypedError(byte[] data) {
    try {
      Catalogue.decode(data);
    } catch (CatalogueException error) {
      return;
    }
  }
}
