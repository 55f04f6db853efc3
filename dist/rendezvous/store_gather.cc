#include "dist/rendezvous/store_gather.h"

#include <fmt/core.h>

#include <cstdint>
#include <cstring>
#include <utility>

namespace lockstep::dist {
namespace {

/// Appends a text after its length.
void append(std::string& all, const std::string& text) {
  const uint64_t bytes = text.size();
  all.append(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
  all += text;
}

std::vector<std::string> unpacked(const std::string& all) {
  std::vector<std::string> texts;
  for (size_t at = 0; at < all.size();) {
    uint64_t bytes = 0;
    std::memcpy(&bytes, all.data() + at, sizeof(bytes));
    texts.push_back(all.substr(at + sizeof(bytes), bytes));
    at += sizeof(bytes) + bytes;
  }
  return texts;
}

}  // namespace

std::vector<std::string> StoreGather::operator()(std::string text, Store::Timeout timeout) {
  const std::string prefix = fmt::format("{}/{}/", name_, round_++);
  const std::string whole = prefix + "all";
  const auto key = [&](int rank) { return fmt::format("{}{}", prefix, rank); };
  if (store_.rank() != 0) {
    store_.set(key(store_.rank()), std::move(text));
    return unpacked(store_.get(whole, timeout));
  }
  std::vector<std::string> keys;
  for (int rank = 1; rank < store_.world_size(); ++rank) keys.push_back(key(rank));
  store_.wait(keys, timeout);
  std::string all;
  append(all, text);
  for (const std::string& each : keys) {
    append(all, store_.get(each));
    (void)store_.erase(each);
  }
  store_.set(whole, all);
  return unpacked(all);
}

}  // namespace lockstep::dist
