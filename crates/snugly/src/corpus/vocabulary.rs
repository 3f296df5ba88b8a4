//! The words that generated values are made of, each table roughly from frequent to rare.

use std::sync::LazyLock;

/// A table of words.
pub type Words = LazyLock<Vec<&'static str>>;

macro_rules! words {
    ($text:literal) => {
        LazyLock::new(|| $text.split_ascii_whitespace().collect())
    };
}

/// Nouns, singular.
pub static NOUNS: Words = words!(
    "time year people way day man thing woman life child world school state family student group country problem hand \
     part place case week company system program question work government number night point home water room mother \
     area money story fact month lot right study book eye job word business issue side kind head house service friend \
     father power hour game line end member law car city community name president team minute idea kid body \
     information back parent face others level office door health person art war history party result change morning \
     reason research girl guy moment air teacher force education foot boy age policy process music market sense nation \
     plan college interest death experience effect use class control field development role effort rate heart drug \
     show leader light voice wife police mind price report decision son view relationship town road arm difference \
     value building action season society tax director position player record paper space ground form event official \
     matter center couple site project activity star table need court oil situation cost industry figure street image \
     phone data picture practice piece land product doctor wall patient worker news test movie north love support \
     technology step baby computer type attention film tree source organization hair window culture chance brother \
     energy period course summer plant opportunity term letter condition choice rule daughter south husband floor \
     campaign material population call economy hospital church risk fire future bank agreement goal size bird animal \
     engine harbour kettle lantern museum novel orchard parcel quarry ribbon saddle tunnel umbrella village workshop \
     yard zone anchor barrel canvas dragon ember feather glacier hammer island jacket kitchen ladder meadow needle"
);

/// Verbs in the past tense that take an object.
pub static VERBS: Words = words!(
    "made took found gave told called left kept let held brought wrote provided set met included continued changed led \
     understood watched followed stopped created spoke read spent grew opened walked won offered remembered considered \
     bought served sent built reached killed raised passed sold required reported decided pulled returned explained \
     carried developed drove broke thanked received joined agreed supported covered caught drew chose wanted caused \
     replaced described produced reduced entered pushed noticed planned prepared released directed designed removed \
     protected recorded starred adapted collected delivered examined finished guided handled invented judged launched \
     measured negotiated observed painted questioned repaired studied translated updated visited warned admired"
);

/// Adjectives.
pub static ADJECTIVES: Words = words!(
    "new good first last long great little own other old right big high different small large next early young \
     important few public bad same able human local sure free better true whole clear recent certain personal open red \
     difficult available likely short single medical current wrong private past foreign fine common poor natural \
     significant similar hot dead central happy serious ready simple left physical general environmental financial \
     blue democratic dark various entire close legal religious cold final main green nice huge popular traditional \
     cultural American independent British French German Italian Japanese northern southern western eastern famous \
     quiet bright gentle hidden narrow ancient broken curious distant elegant frozen golden hollow icy jagged keen \
     lonely modest noisy ordinary patient rapid silent tender urban vivid wooden young zealous"
);

/// Words that open a place in a sentence.
pub static PREPOSITIONS: Words = words!(
    "of in to for with on at from by about as into like through after over \
     between out against during without before under around among near behind across beyond despite toward"
);

/// Given names.
pub static GIVEN_NAMES: Words = words!(
    "James Mary Robert Patricia John Jennifer Michael Linda David Elizabeth William Barbara Richard Susan Joseph \
     Jessica Thomas Sarah Charles Karen Christopher Lisa Daniel Nancy Matthew Betty Anthony Sandra Mark Ashley Donald \
     Emily Steven Kimberly Andrew Donna Paul Michelle Joshua Carol Kenneth Amanda Kevin Melissa Brian Deborah George \
     Stephanie Timothy Rebecca Ronald Laura Jason Helen Edward Sharon Jeffrey Cynthia Ryan Kathleen Jacob Amy Gary \
     Angela Nicholas Shirley Eric Anna Jonathan Ruth Stephen Brenda Larry Pamela Justin Nicole Scott Katherine Brandon \
     Samantha Benjamin Christine Samuel Emma Gregory Catherine Alexander Virginia Patrick Debra Frank Rachel Raymond \
     Janet Jack Carolyn Dennis Maria Jerry Heather Aarav Beatriz Chiara Dmitri Elif Farouk Giulia Hiroshi Ingrid Jelena \
     Kofi Leila Mateo Nadia Olumide Priya Quentin Rosa Sven Tariq Ulrike Valentina Wei Ximena Yuki Zoltan"
);

/// Family names.
pub static FAMILY_NAMES: Words = words!(
    "Smith Johnson Williams Brown Jones Garcia Miller Davis Rodriguez Martinez Hernandez Lopez Gonzalez Wilson Anderson \
     Thomas Taylor Moore Jackson Martin Lee Perez Thompson White Harris Sanchez Clark Ramirez Lewis Robinson Walker \
     Young Allen King Wright Scott Torres Nguyen Hill Flores Green Adams Nelson Baker Hall Rivera Campbell Mitchell \
     Carter Roberts Gomez Phillips Evans Turner Diaz Parker Cruz Edwards Collins Reyes Stewart Morris Morales Murphy \
     Cook Rogers Gutierrez Ortiz Morgan Cooper Peterson Bailey Reed Kelly Howard Ramos Kim Cox Ward Richardson Watson \
     Brooks Chavez Wood James Bennett Gray Mendoza Ruiz Hughes Price Alvarez Castillo Sanders Patel Myers Long Ross \
     Foster Jimenez Abebe Bianchi Chatterjee Dubois Eriksson Fischer Grigoryan Haddad Ivanova Jansen Kowalski Lindqvist \
     Moretti Nakamura Okafor Petrov Quispe Rasmussen Schneider Takahashi Ueda Vasquez Weber Xu Yilmaz Zimmermann"
);

/// Towns.
pub static TOWNS: Words = words!(
    "London Paris Berlin Madrid Rome Vienna Lisbon Dublin Oslo Stockholm Helsinki Warsaw Prague Budapest Athens Zurich \
     Geneva Brussels Amsterdam Rotterdam Hamburg Munich Cologne Lyon Marseille Bordeaux Toulouse Barcelona Valencia \
     Seville Porto Naples Milan Turin Florence Venice Krakow Gdansk Tallinn Riga Vilnius Boston Chicago Denver Seattle \
     Austin Houston Dallas Phoenix Atlanta Miami Portland Toronto Montreal Vancouver Lima Bogota Quito Santiago \
     Montevideo Recife Salvador Nairobi Lagos Accra Cairo Tunis Mumbai Chennai Kolkata Pune Hanoi Manila Jakarta Seoul \
     Busan Osaka Kyoto Nagoya Sapporo Sydney Melbourne Perth Auckland Wellington"
);

/// Topics of articles and departments of shops.
pub static TOPICS: Words = words!(
    "news sport culture travel science technology business health music film books food garden fashion history politics \
     photography design cycling sailing astronomy chess cooking hiking knitting woodwork pottery theatre opera poetry"
);

/// Time zones.
pub static TIME_ZONES: Words = words!(
    "Europe/Berlin Europe/London Europe/Paris Europe/Madrid Europe/Amsterdam America/New_York America/Chicago \
     America/Denver America/Sao_Paulo Asia/Tokyo Asia/Seoul Asia/Kolkata Australia/Sydney Africa/Lagos"
);
