#include "dist/rendezvous/store.h"

#include <algorithm>
#include <charconv>
#include <utility>
#include <vector>

#include "core/base/check.h"

namespace lockstep::dist {

namespace {

using Kind = StoreMessage::Kind;

constexpr size_t kMostBytes = size_t{16} << 20;

void check_size(const StoreMessage& message) {
  size_t bytes = 0;
  for (const std::string& text : message.texts) bytes += text.size();
  LS_CHECK(bytes <= kMostBytes && message.texts.size() <= UINT16_MAX, DistError,
           "[store] {} keys and values of {} bytes are too many: expected at most {} of {} bytes. "
           "The store is for small values; send tensors with a process group.",
           message.texts.size(), bytes, UINT16_MAX, kMostBytes);
}

std::vector<std::string> texts_of(std::span<const std::string> keys) {
  return {keys.begin(), keys.end()};
}

}  // namespace

Store::Store(const StoreOptions& options)
    : connection_(std::make_shared<StoreConnection>(options)) {}

int Store::rank() const { return connection_->options().rank; }

int Store::world_size() const { return connection_->options().world_size; }

std::string Store::own_host() const { return connection_->own_host(); }

std::string Store::request(StoreMessage message) const {
  check_size(message);
  return connection_->request(std::move(message), connection_->options().timeout);
}

std::string Store::request_and_wait(StoreMessage message, Timeout timeout) const {
  using std::chrono::milliseconds;
  check_size(message);
  const milliseconds most = std::chrono::hours(24 * 365);
  const milliseconds within =
      std::clamp(timeout.value_or(connection_->options().timeout), milliseconds(0), most);
  message.numbers = {within.count()};
  return connection_->request(std::move(message), within);
}

void Store::set(const std::string& key, std::string value) {
  (void)request({Kind::kSet, 0, {}, {key, std::move(value)}});
}

std::string Store::get(const std::string& key, Timeout timeout) const {
  return request_and_wait({Kind::kGet, 0, {}, {key}}, timeout);
}

int64_t Store::add(const std::string& key, int64_t amount) {
  const std::string text = request({Kind::kAdd, 0, {amount}, {key}});
  int64_t sum = 0;
  (void)std::from_chars(text.data(), text.data() + text.size(), sum);
  return sum;
}

bool Store::check(std::span<const std::string> keys) const {
  return keys.empty() || request({Kind::kCheck, 0, {}, texts_of(keys)}) == "1";
}

void Store::wait(std::span<const std::string> keys, Timeout timeout) const {
  if (!keys.empty()) (void)request_and_wait({Kind::kWait, 0, {}, texts_of(keys)}, timeout);
}

std::string Store::compare_set(const std::string& key, std::string expected, std::string desired) {
  return request({Kind::kCompareSet, 0, {}, {key, std::move(expected), std::move(desired)}});
}

bool Store::erase(const std::string& key) { return request({Kind::kErase, 0, {}, {key}}) == "1"; }

void Store::join(Timeout timeout) const {
  (void)request_and_wait({Kind::kJoin, 0, {}, {}}, timeout);
}

void Store::barrier(const std::string& name, Timeout timeout) {
  (void)request_and_wait({Kind::kBarrier, 0, {}, {name}}, timeout);
}

}  // namespace lockstep::dist
