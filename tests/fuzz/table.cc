#include <zlib.h>

#include <algorithm>
#include <optional>

#include "core/base/error.h"
#include "data/table_data.h"
#include "tests/fuzz/targets.h"

namespace lockstep::fuzz {
namespace {

/// Returns the hash of the rows; nothing if the table is refused.
std::optional<ContentHash> parse_table(Input input) {
  std::span<const std::byte> rest = std::as_bytes(input);
  const auto source = [&rest](std::span<std::byte> into) {
    const size_t count = std::min(into.size(), rest.size());
    std::copy_n(rest.begin(), count, into.begin());
    rest = rest.subspan(count);
    return count;
  };
  try {
    const train::TableData table(source, "fuzzed", {});
    require(table.features() >= 1 && table.classes() >= 1, "a table has features and classes");
    require(table.training_samples() >= 1, "rows are left to train on");
    return table.fingerprint();
  } catch (const DataError& error) {
    require(std::string(error.what()).starts_with("[data] fuzzed"), "an error names its source");
    return std::nullopt;
  }
}

/// `input` as gzip writes it, in two members.
std::string packed(Input input) {
  std::string all;
  for (const Input part : {input.first(input.size() / 2), input.subspan(input.size() / 2)}) {
    z_stream stream{};
    require(deflateInit2(&stream, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK,
            "zlib starts");
    std::string member(deflateBound(&stream, part.size()), '\0');
    stream.next_in = const_cast<unsigned char*>(part.data());
    stream.avail_in = static_cast<unsigned>(part.size());
    stream.next_out = reinterpret_cast<unsigned char*>(member.data());
    stream.avail_out = static_cast<unsigned>(member.size());
    const int status = deflate(&stream, Z_FINISH);
    member.resize(stream.total_out);
    deflateEnd(&stream);
    require(status == Z_STREAM_END, "zlib packs");
    all += member;
  }
  return all;
}

}  // namespace

Outcome fuzz_table(Input input) {
  const std::optional<ContentHash> plain = parse_table(input);
  const bool is_packed = input.size() >= 2 && input[0] == 0x1f && input[1] == 0x8b;
  if (!is_packed) {
    const std::string member = packed(input);
    require(parse_table({reinterpret_cast<const uint8_t*>(member.data()), member.size()}) == plain,
            "a packed table reads like the plain one");
  }
  return plain ? Outcome::kAccepted : Outcome::kRefused;
}

}  // namespace lockstep::fuzz
