#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "core/base/content_hash.h"

namespace lockstep::train {

/// Results that are dear to make, kept in a folder under a hash of what they were made from.
/// Entries appear whole or not at all, so processes may share a folder. What is read is compared
/// with a checksum first; a damaged entry counts as missing. A cache that cannot be written is done
/// without: losing it costs only time.
class TokenCache {
 public:
  /// An entry's bytes, mapped from its file; `owner` keeps them alive.
  struct Entry {
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> owner;
  };

  /// Keeps entries in `folder`, made when first needed. An empty path keeps nothing.
  explicit TokenCache(std::filesystem::path folder);

  /// The entry of `kind` ("tokens") under `key`, if there is an undamaged one.
  std::optional<Entry> find(std::string_view kind, const ContentHash& key) const;
  /// Stores `parts`, one after the other, under `key`.
  void store(std::string_view kind, const ContentHash& key,
             std::span<const std::span<const std::byte>> parts) const;

  /// Where an entry lies.
  std::filesystem::path path(std::string_view kind, const ContentHash& key) const;

 private:
  std::filesystem::path folder_;
};

}  // namespace lockstep::train
