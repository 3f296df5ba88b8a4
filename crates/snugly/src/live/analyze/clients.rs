//! A way to compress as what clients of each language are given to do so.

use serde::Serialize;

/// A way to compress.
pub(super) struct Configuration<'a> {
    pub(super) codec: &'a str,
    /// Nothing for the codec's default.
    pub(super) level: Option<i32>,
    /// Whether values are written with the dictionaries of the catalogue.
    pub(super) catalogue: bool,
}

/// Configuration to paste into an application.
#[derive(Serialize)]
pub(super) struct Client {
    pub(super) language: &'static str,
    pub(super) configuration: String,
}

/// Names of the codecs of clients in a language, and the code around them.
struct Language {
    name: &'static str,
    begin: &'static str,
    zstd: &'static str,
    lz4: &'static str,
    level: fn(i32) -> String,
    catalogue: &'static str,
    end: &'static str,
}

const LANGUAGES: [Language; 3] = [
    Language {
        name: "Python",
        begin: "snugly.Valkey(..., compression=CompressionConfiguration(backend=",
        zstd: r#""zstd""#,
        lz4: r#""lz4""#,
        level: |level| format!(", compression_level={level}"),
        catalogue: r#", dictionary="catalogue""#,
        end: "))",
    },
    Language {
        name: "Go",
        begin: "goredis.Compress(client, compression.Options{Backend: envelope.",
        zstd: "Zstd",
        lz4: "LZ4",
        level: |level| format!(", CompressionLevel: {level}"),
        catalogue: ", UseCatalogue: true",
        end: "})",
    },
    Language {
        name: "Java",
        begin: "CompressionConfiguration.builder().backend(CompressionBackend.",
        zstd: "ZSTD)",
        lz4: "LZ4)",
        level: |level| format!(".compressionLevel({level})"),
        catalogue: ".catalogue(true)",
        end: ".build()",
    },
];

/// The configuration in each language.
pub(super) fn clients(configuration: &Configuration<'_>) -> Vec<Client> {
    let written = |language: &Language| Client {
        language: language.name,
        configuration: language.write(configuration),
    };
    LANGUAGES.iter().map(written).collect()
}

impl Language {
    fn write(&self, configuration: &Configuration<'_>) -> String {
        let codec = if configuration.codec == "lz4" { self.lz4 } else { self.zstd };
        let level = configuration.level.map(self.level).unwrap_or_default();
        let catalogue = if configuration.catalogue { self.catalogue } else { "" };
        [self.begin, codec, &level, catalogue, self.end].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configurations(codec: &str, level: Option<i32>, catalogue: bool) -> Vec<String> {
        let configuration = Configuration { codec, level, catalogue };
        clients(&configuration).into_iter().map(|client| client.configuration).collect()
    }

    #[test]
    fn each_language_is_told_what_its_client_takes() {
        assert_eq!(
            configurations("zstd", Some(1), true),
            [
                r#"snugly.Valkey(..., compression=CompressionConfiguration(backend="zstd", compression_level=1, dictionary="catalogue"))"#,
                "goredis.Compress(client, compression.Options{Backend: envelope.Zstd, CompressionLevel: 1, UseCatalogue: true})",
                "CompressionConfiguration.builder().backend(CompressionBackend.ZSTD).compressionLevel(1).catalogue(true).build()",
            ]
        );
        assert_eq!(
            configurations("lz4", None, false),
            [
                r#"snugly.Valkey(..., compression=CompressionConfiguration(backend="lz4"))"#,
                "goredis.Compress(client, compression.Options{Backend: envelope.LZ4})",
                "CompressionConfiguration.builder().backend(CompressionBackend.LZ4).build()",
            ]
        );
    }
}
