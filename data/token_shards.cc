#include "data/token_shards.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "core/base/check.h"
#include "core/base/files/atomic_file.h"
#include "core/base/files/mapped_file.h"

namespace lockstep::train {
namespace {

static_assert(std::endian::native == std::endian::little,
              "tokens are read as they lie in the file");

constexpr size_t kHeaderWords = 256;
constexpr size_t kHeaderBytes = kHeaderWords * sizeof(int32_t);

struct Kind {
  int32_t magic;
  int32_t version;
  int width;
};
constexpr std::array<Kind, 2> kKinds = {{{20240520, 1, 2}, {20240801, 7, 4}}};

int32_t word(std::span<const std::byte> bytes, size_t index) {
  int32_t value;
  std::memcpy(&value, bytes.data() + index * sizeof value, sizeof value);
  return value;
}

int32_t swapped(int32_t value) {
  return static_cast<int32_t>(__builtin_bswap32(static_cast<uint32_t>(value)));
}

const Kind* find_kind(int32_t magic) {
  const auto found = std::ranges::find(kKinds, magic, &Kind::magic);
  return found == kKinds.end() ? nullptr : &*found;
}

/// Names the kind of another llm.c file by its magic number, for error messages; else null.
const char* other_file(int32_t magic) {
  switch (magic) {
    case 20240326:
      return "a model";
    case 20240327:
      return "a debugging state";
    case 20240328:
      return "a tokenizer";
    case 20240522:
      return "a multiple-choice evaluation";
    case 20240527:
      return "an optimizer state";
    default:
      return nullptr;
  }
}

[[noreturn]] void refuse_magic(int32_t magic, const std::string& file) {
  std::string hint = "It is no llm.c token shard; headerless tokens need the format nanogpt.";
  if (find_kind(swapped(magic)) != nullptr) hint = "The file is big-endian: write it again.";
  if (const char* other = other_file(magic)) hint = fmt::format("The file is {} of llm.c.", other);
  throw DataError(fmt::format("[data] {}: wrong magic at byte 0: expected {} or {}, got {}. {}",
                              file, kKinds[0].magic, kKinds[1].magic, magic, hint));
}

TokenShard parse_llmc(std::span<const std::byte> bytes, const std::string& file) {
  LS_CHECK(bytes.size() >= sizeof(int32_t), DataError,
           "[data] {}: expected a header of {} bytes, but the file ends at byte {}.", file,
           kHeaderBytes, bytes.size());
  const int32_t magic = word(bytes, 0);
  const Kind* kind = find_kind(magic);
  if (kind == nullptr) refuse_magic(magic, file);
  LS_CHECK(bytes.size() >= kHeaderBytes, DataError,
           "[data] {}: expected a header of {} bytes, but the file ends at byte {}. It was cut "
           "short: write it again.",
           file, kHeaderBytes, bytes.size());
  LS_CHECK(word(bytes, 1) == kind->version, DataError,
           "[data] {}: wrong version at byte 4: expected {} with magic {}, got {}.", file,
           kind->version, magic, word(bytes, 1));
  const int64_t count = word(bytes, 2);
  LS_CHECK(count > 0, DataError,
           "[data] {}: wrong number of tokens at byte 8: expected at least 1, got {}.", file,
           count);
  const size_t expected = kHeaderBytes + static_cast<size_t>(count * kind->width);
  LS_CHECK(
      bytes.size() == expected, DataError,
      "[data] {}: the header names {} tokens of {} bytes (at byte 8), so expected a file of {} "
      "bytes, but it ends at byte {}. It was cut short or damaged: write it again.",
      file, count, kind->width, expected, bytes.size());
  return {ShardFormat::kLlmc, magic, kind->version,
          TokenArray(bytes.subspan(kHeaderBytes), kind->width, nullptr)};
}

TokenShard parse_nanogpt(std::span<const std::byte> bytes, const std::string& file) {
  LS_CHECK(!bytes.empty(), DataError, "[data] {}: the file is empty: expected tokens.", file);
  LS_CHECK(bytes.size() % 2 == 0, DataError,
           "[data] {}: expected tokens of two bytes, but the file ends at byte {}, within one. It "
           "was cut short: write it again.",
           file, bytes.size());
  LS_CHECK(guess_format(bytes) == ShardFormat::kNanogpt, DataError,
           "[data] {}: starts with llm.c's magic number at byte 0: read it with the format llmc.",
           file);
  return {ShardFormat::kNanogpt, 0, 0, TokenArray(bytes, 2, nullptr)};
}

}  // namespace

const char* name(ShardFormat format) { return format == ShardFormat::kLlmc ? "llmc" : "nanogpt"; }

ShardFormat guess_format(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(int32_t)) return ShardFormat::kNanogpt;
  const int32_t magic = word(bytes, 0);
  const bool known = find_kind(magic) != nullptr || find_kind(swapped(magic)) != nullptr;
  return known ? ShardFormat::kLlmc : ShardFormat::kNanogpt;
}

TokenShard parse_shard(std::span<const std::byte> bytes, ShardFormat format,
                       const std::string& file) {
  return format == ShardFormat::kLlmc ? parse_llmc(bytes, file) : parse_nanogpt(bytes, file);
}

TokenShard open_shard(const std::filesystem::path& path, ShardFormat format) {
  const MappedFile file(path);
  TokenShard shard = parse_shard(file.bytes(), format, path.string());
  shard.tokens = TokenArray(shard.tokens.bytes(), shard.tokens.width(), file.owner());
  shard.tokens.check();
  return shard;
}

void write_shard(const std::filesystem::path& path, ShardFormat format, const TokenArray& tokens) {
  LS_CHECK(tokens.size() > 0, DataError, "[data] {}: there are no tokens to write.", path.string());
  LS_CHECK(format == ShardFormat::kLlmc || tokens.stored_width() == 2, DataError,
           "[data] {}: a nanoGPT file holds ids below 65536, and the vocabulary is larger. Write "
           "the format llmc.",
           path.string());
  LS_CHECK(format == ShardFormat::kNanogpt || tokens.size() <= std::numeric_limits<int32_t>::max(),
           DataError,
           "[data] {}: an llm.c shard holds fewer than 2^31 tokens, got {}. Split the input.",
           path.string(), tokens.size());
  AtomicFile file(path);
  if (format == ShardFormat::kLlmc) {
    const Kind& kind = kKinds[tokens.stored_width() == 2 ? 0 : 1];
    std::array<int32_t, kHeaderWords> header{};
    header[0] = kind.magic;
    header[1] = kind.version;
    header[2] = static_cast<int32_t>(tokens.size());
    file.write(std::as_bytes(std::span(header)));
  }
  constexpr int64_t kRun = int64_t{1} << 16;
  std::vector<uint16_t> room;
  for (int64_t first = 0; first < tokens.size(); first += kRun) {
    file.write(tokens.slice(first, std::min(kRun, tokens.size() - first)).stored(room));
  }
  tokens.check();
  file.publish();
}

}  // namespace lockstep::train
