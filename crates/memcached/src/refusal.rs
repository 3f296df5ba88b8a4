//! Refusals: what is wrong with a request, in memcached's words.
//!
//! It knows the words. Which of them are written, and how, is for `reply`.

/// What is wrong with a request. Displayed as the line that memcached answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No such command, or too few or too many words.
    #[error("ERROR")]
    UnknownCommand,
    /// A key too long, or numbers that are none; in binary, wrong lengths.
    #[error("CLIENT_ERROR bad command line format")]
    BadFormat,
    /// Something other than `\r\n` behind a value.
    #[error("CLIENT_ERROR bad data chunk")]
    BadDataChunk,
    /// A value longer than [`Limits::max_value`](crate::Limits::max_value).
    #[error("SERVER_ERROR object too large for cache")]
    TooLarge,
    /// A time of expiry that is no number.
    #[error("CLIENT_ERROR invalid exptime argument")]
    BadExptime,
    /// Something to add that is no number, or below 0.
    #[error("CLIENT_ERROR invalid numeric delta argument")]
    BadDelta,
    /// A time behind `delete`, as old versions took one.
    #[error("CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]")]
    BadDelete,
    /// A memory limit below 8 MB.
    #[error("MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m")]
    MemoryLimitTooSmall,
    /// A memory limit beyond a billion megabytes.
    #[error("MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes")]
    MemoryLimitTooLarge,
    /// A meta flag whose number is none.
    #[error("CLIENT_ERROR bad token in command line format")]
    BadToken,
    /// Something to add, as a meta flag, that is no number.
    #[error("CLIENT_ERROR invalid numeric delta value")]
    BadDeltaFlag,
    /// A number to begin with, as a meta flag, that is none.
    #[error("CLIENT_ERROR invalid numeric initial value")]
    BadInitialFlag,
    /// A meta flag that is there twice.
    #[error("CLIENT_ERROR duplicate flag")]
    DuplicateFlag,
    /// A meta flag that is unknown.
    #[error("CLIENT_ERROR invalid flag")]
    InvalidFlag,
    /// A meta flag that is unknown, wrong or there twice, of `md` and `ma`.
    #[error("CLIENT_ERROR invalid or duplicate flag")]
    InvalidOrDuplicateFlag,
    /// Too many meta flags, of `mg`.
    #[error("CLIENT_ERROR options flags are too long")]
    TooManyGetFlags,
    /// Too many meta flags.
    #[error("CLIENT_ERROR options flags too long")]
    TooManyFlags,
    /// An opaque beyond 31 bytes.
    #[error("CLIENT_ERROR opaque token too long")]
    LongOpaque,
    /// A key that is not in base64, though it is said to be.
    #[error("CLIENT_ERROR error decoding key")]
    BadBase64,
    /// A mode that is not one letter.
    #[error("CLIENT_ERROR incorrect length for M token")]
    LongMode,
    /// An unknown mode of `ms`.
    #[error("CLIENT_ERROR invalid mode for ms M token")]
    BadStoreMode,
    /// An unknown mode of `ma`.
    #[error("CLIENT_ERROR invalid mode for ma M token")]
    BadArithmeticMode,
    /// A line without an end, or a packet that is none: there is no answer, and the connection is to be
    /// closed.
    #[error("no request of memcached's protocols")]
    Unanswerable,
}
