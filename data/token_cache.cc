#include "data/token_cache.h"

#include <cstring>
#include <utility>

#include "core/base/check.h"
#include "core/base/files/atomic_file.h"
#include "core/base/files/mapped_file.h"

namespace lockstep::train {
namespace {

struct Header {
  char magic[8] = {'L', 'S', 'C', 'A', 'C', 'H', 'E', '1'};
  uint64_t size = 0;
  ContentHash key;
  ContentHash content;
  uint64_t reserved[2] = {};
};
static_assert(sizeof(Header) == 64 && std::is_trivially_copyable_v<Header>);

}  // namespace

std::optional<std::span<const std::byte>> parse_cache_entry(std::span<const std::byte> file,
                                                            const ContentHash& key) {
  if (file.size() < sizeof(Header)) return std::nullopt;
  Header header;
  std::memcpy(&header, file.data(), sizeof header);
  const std::span<const std::byte> content = file.subspan(sizeof header);
  const bool good = std::memcmp(header.magic, Header().magic, sizeof header.magic) == 0 &&
                    header.key == key && header.size == content.size() &&
                    header.content == ContentHasher().add(content).result();
  return good ? std::optional(content) : std::nullopt;
}

TokenCache::TokenCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

std::filesystem::path TokenCache::path(std::string_view kind, const ContentHash& key) const {
  return folder_ / fmt::format("{}-{}.bin", kind, key.hex());
}

std::optional<TokenCache::Entry> TokenCache::find(std::string_view kind,
                                                  const ContentHash& key) const {
  std::error_code ignored;
  if (folder_.empty() || !std::filesystem::exists(path(kind, key), ignored)) return std::nullopt;
  try {
    const MappedFile file(path(kind, key));
    const auto content = parse_cache_entry(file.bytes(), key);
    check_mapped(file.bytes().data());
    if (!content) return std::nullopt;
    return Entry{*content, file.owner()};
  } catch (const DataError&) {
    return std::nullopt;  // unreadable: the caller computes it again
  }
}

void TokenCache::store(std::string_view kind, const ContentHash& key,
                       std::span<const std::span<const std::byte>> parts) const {
  if (folder_.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  if (error) return;
  std::vector<std::byte> content;
  for (const auto part : parts) content.insert(content.end(), part.begin(), part.end());
  Header header;
  header.size = content.size();
  header.key = key;
  header.content = ContentHasher().add(content).result();
  try {
    AtomicFile file(path(kind, key));
    file.write(std::as_bytes(std::span(&header, 1)));
    file.write(content);
    file.publish();
  } catch (const DataError&) {
    // A full disk or a read-only folder: do without. AtomicFile removes its partial file.
  }
}

}  // namespace lockstep::train
