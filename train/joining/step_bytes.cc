#include "train/joining/step_bytes.h"

#include <cstring>
#include <string_view>
#include <type_traits>

#include "core/base/check.h"

namespace lockstep::train {

namespace {

/// Calls `take` with each member.
template <class Step, class Take>
void for_each_member(Step& step, const Take& take) {
  take(step.step);
  take(step.loss);
  take(step.grad_norm);
  take(step.learning_rate);
  take(step.tokens);
  take(step.seconds);
  take(step.data_wait_ms);
  take(step.exposed_comm_ms);
  take(step.sent_bytes);
  take(step.loss_scale);
  take(step.outcome);
  take(step.non_finite);
  take(step.audit);
  take(step.spike);
  take(step.stop);
}

}  // namespace

std::string to_bytes(const StepResult& step) {
  std::string bytes;
  const auto add = [&](const void* data, size_t size) {
    bytes.append(static_cast<const char*>(data), size);
  };
  for_each_member(step, [&]<class T>(const T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      const uint64_t size = value.size();
      add(&size, sizeof size);
      add(value.data(), value.size());
    } else {
      static_assert(std::is_trivially_copyable_v<T>);
      add(&value, sizeof value);
    }
  });
  return bytes;
}

StepResult step_of_bytes(const std::string& bytes) {
  std::string_view left = bytes;
  const auto take = [&](void* data, size_t size) {
    LS_CHECK(left.size() >= size, DataError,
             "[train] {} bytes are no step of this build: expected more. Start all ranks with the "
             "same program.",
             bytes.size());
    std::memcpy(data, left.data(), size);
    left.remove_prefix(size);
  };
  StepResult step;
  for_each_member(step, [&]<class T>(T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      uint64_t size = 0;
      take(&size, sizeof size);
      LS_CHECK(size <= left.size(), DataError,
               "[train] {} bytes are no step of this build: a text of it would have {}. Start all "
               "ranks with the same program.",
               bytes.size(), size);
      value.assign(left.substr(0, size));
      left.remove_prefix(size);
    } else {
      take(&value, sizeof value);
    }
  });
  return step;
}

}  // namespace lockstep::train
