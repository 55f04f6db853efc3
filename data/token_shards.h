#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "data/token_array.h"

namespace lockstep::train {

/// File format of a shard. All numbers are little-endian.
enum class ShardFormat {
  /// llm.c: 256 int32 of header ([0] magic, [1] version, [2] number of tokens), then the tokens:
  /// magic 20240520, version 1, two bytes each; or magic 20240801, version 7, four bytes each.
  kLlmc,
  /// nanoGPT: tokens of two bytes each, without a header.
  kNanogpt,
};

const char* name(ShardFormat format);

/// A file of tokens whose size has been checked against its header.
struct TokenShard {
  ShardFormat format = ShardFormat::kLlmc;
  int32_t magic = 0;    ///< 0 in headerless files
  int32_t version = 0;  ///< 0 in headerless files
  TokenArray tokens;
};

/// Parses a shard from memory, which must outlive the result; a pure function of its arguments.
/// Throws DataError that starts with `file` and names the first wrong byte. Does not check that
/// tokens lie within a vocabulary: a shard does not state the size of its vocabulary.
TokenShard parse_shard(std::span<const std::byte> bytes, ShardFormat format,
                       const std::string& file);

/// Maps and reads the shard `path`. Throws DataError.
TokenShard open_shard(const std::filesystem::path& path, ShardFormat format);

/// Guesses the format of a file: kLlmc if its first word is one of llm.c's magic numbers, in either
/// byte order, else kNanogpt.
ShardFormat guess_format(std::span<const std::byte> bytes);

/// Writes `tokens` to `path` atomically. llm.c's format takes two bytes per token if all are below
/// 65536, else four. Throws DataError if the format cannot hold them (nanoGPT: ids of 65536 or
/// above; llm.c: 2^31 tokens or more) or the file cannot be written.
void write_shard(const std::filesystem::path& path, ShardFormat format, const TokenArray& tokens);

}  // namespace lockstep::train
