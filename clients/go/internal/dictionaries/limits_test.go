package dictionaries

import (
	"testing"

	"snugly.dev/go/internal/vectors"
)

func TestLimitsAreThoseOfTheSpecification(t *testing.T) {
	var specified struct {
		HeldDictionaries      int `json:"held_dictionaries"`
		UnknownIDsOfOneLookUp int `json:"unknown_ids_of_one_look_up"`
		Catalogue             struct{ Bytes, Active, Dictionaries, Forgotten int }
	}
	vectors.Read(t, "data/limits.json", &specified)
	own := specified
	own.HeldDictionaries, own.UnknownIDsOfOneLookUp = mostHeld, mostUnknown
	own.Catalogue.Bytes, own.Catalogue.Active = maxDocumentBytes, maxActive
	own.Catalogue.Dictionaries, own.Catalogue.Forgotten = maxDictionaries, maxForgotten
	if own != specified {
		t.Errorf("limits are %+v, wanted %+v", own, specified)
	}
}
