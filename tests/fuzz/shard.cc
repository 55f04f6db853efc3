#include <algorithm>
#include <vector>

#include "core/base/error.h"
#include "data/token_shards.h"
#include "tests/fuzz/targets.h"

namespace lockstep::fuzz {
namespace {

constexpr size_t kLlmcHeaderBytes = 1024;

Outcome parse_shard(std::span<const std::byte> file, train::ShardFormat format) {
  train::TokenShard shard;
  try {
    shard = train::parse_shard(file, format, "fuzzed");
  } catch (const DataError&) {
    return Outcome::kRefused;
  }
  const train::TokenArray& tokens = shard.tokens;
  const size_t header = format == train::ShardFormat::kLlmc ? kLlmcHeaderBytes : 0;
  require(shard.format == format && train::guess_format(file) == format,
          "a file is read only as the format it starts like");
  require(tokens.size() > 0, "a shard holds tokens");
  require(header + static_cast<size_t>(tokens.size() * tokens.width()) == file.size(),
          "the tokens take the whole file");
  std::vector<int64_t> read(static_cast<size_t>(tokens.size()));
  const int64_t largest = tokens.read(0, read);
  require(largest == *std::ranges::max_element(read), "read gives the largest token");
  require(read.back() == tokens[tokens.size() - 1], "read gives the tokens in their order");
  require(std::ranges::min(read) >= 0 && largest < int64_t{1} << (8 * tokens.width()),
          "tokens are as wide as the shard says");
  return Outcome::kAccepted;
}

}  // namespace

Outcome fuzz_shard(Input input) {
  const std::span<const std::byte> file = std::as_bytes(input);
  const Outcome llmc = parse_shard(file, train::ShardFormat::kLlmc);
  const Outcome nanogpt = parse_shard(file, train::ShardFormat::kNanogpt);
  require(llmc == Outcome::kRefused || nanogpt == Outcome::kRefused,
          "no file is a shard of both formats");
  return llmc == Outcome::kAccepted ? llmc : nanogpt;
}

}  // namespace lockstep::fuzz
