#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "core/base/content_hash.h"

namespace lockstep::train {

/// Returns what an entry's file holds after its header; nothing if the file is damaged or belongs
/// to another key.
std::optional<std::span<const std::byte>> parse_cache_entry(std::span<const std::byte> file,
                                                            const ContentHash& key);

/// An on-disk cache of results that are expensive to compute, keyed by a hash of their inputs.
/// Entries appear atomically, so processes may share a folder. Entries are verified against a
/// checksum when read; a damaged one counts as missing. Write failures are ignored, since a missing
/// entry costs only time.
class TokenCache {
 public:
  /// An entry's bytes, mapped from its file; `owner` keeps them alive.
  struct Entry {
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> owner;
  };

  /// Keeps entries in `folder`, which is created when first needed. With an empty path the cache
  /// stores nothing.
  explicit TokenCache(std::filesystem::path folder);
  bool stores() const { return !folder_.empty(); }

  /// The entry of `kind` ("tokens") under `key`, if there is an undamaged one.
  std::optional<Entry> find(std::string_view kind, const ContentHash& key) const;
  /// Stores `parts`, one after the other, under `key`.
  void store(std::string_view kind, const ContentHash& key,
             std::span<const std::span<const std::byte>> parts) const;

  /// Path of an entry's file.
  std::filesystem::path path(std::string_view kind, const ContentHash& key) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace lockstep::train
