#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "data/token_array.h"

namespace lockstep::train {

/// How a file holds tokens. All numbers are little-endian.
enum class ShardFormat {
  /// llm.c: 256 int32 of header ([0] magic, [1] version, [2] number of tokens), then the tokens:
  /// magic 20240520, version 1, two bytes each; or magic 20240801, version 7, four bytes each.
  kLlmc,
  /// nanoGPT: nothing but tokens, two bytes each.
  kNanogpt,
};

const char* name(ShardFormat format);

/// A file of tokens, checked: its size is what its header says.
struct TokenShard {
  ShardFormat format = ShardFormat::kLlmc;
  int32_t magic = 0;    ///< 0 in headerless files
  int32_t version = 0;  ///< likewise
  TokenArray tokens;
};

/// Reads a shard from memory, which must outlive the result; a pure function of its arguments.
/// Throws DataError that starts with `file` and names the first byte that is wrong. That tokens
/// lie within a vocabulary is for their user to check: no shard says which vocabulary is its own.
TokenShard parse_shard(std::span<const std::byte> bytes, ShardFormat format,
                       const std::string& file);

/// Maps and reads the shard `path`. Throws DataError.
TokenShard open_shard(const std::filesystem::path& path, ShardFormat format);

/// The format a file starts like: kLlmc if its first word is one of llm.c's magic numbers, in
/// either byte order, else kNanogpt.
ShardFormat guess_format(std::span<const std::byte> bytes);

/// Writes `tokens` to `path`, whole or not at all. llm.c's files take two bytes per token if all
/// are below 65536, else four. Throws DataError if the format cannot hold them (nanoGPT: ids from
/// 65536; llm.c: 2^31 tokens or more) or the file cannot be written.
void write_shard(const std::filesystem::path& path, ShardFormat format, const TokenArray& tokens);

}  // namespace lockstep::train
