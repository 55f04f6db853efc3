#include "launcher/stress/stress_work.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>

#include "core/base/check.h"
#include "core/base/mix_bits.h"
#include "core/base/mutex.h"
#include "core/device/device_runtime.h"
#include "core/device/queued_kernel.h"
#include "core/dispatch/dispatcher.h"

namespace lockstep {

namespace {

void note_difference(StressFindings& findings, const StressPattern& pattern, const void* data,
                     size_t bytes, const std::string& what) {
  const size_t at = pattern.first_difference(data, bytes);
  if (at == bytes) return;
  findings.add(fmt::format("{} at {}: byte {} of {} is wrong", what, data, at, bytes));
}

void add_words(void* to, const void* from, size_t bytes) {
  auto* sums = static_cast<uint64_t*>(to);
  const auto* terms = static_cast<const uint64_t*>(from);
  for (size_t i = 0; i < bytes / sizeof(uint64_t); ++i) sums[i] += terms[i];
}

/// A kernel that calls a function which writes bytes (`to`) and reads bytes (`from`); either may be
/// null.
template <class Body>
class BytesKernel final : public QueuedKernel {
 public:
  BytesKernel(const Operator& op, void* to, const void* from, size_t bytes, int delay_us, Body body)
      : QueuedKernel(op),
        to_(to),
        from_(const_cast<void*>(from)),
        size_(static_cast<int64_t>(bytes)),
        delay_us_(delay_us),
        body_(std::move(body)) {}

  void run() override {
    if (delay_us_ > 0) std::this_thread::sleep_for(std::chrono::microseconds(delay_us_));
    body_();
  }
  void each_access(FunctionRef<void(const TensorArg&, bool)> visit) const override {
    if (from_ != nullptr) visit(as_tensor(from_), false);
    if (to_ != nullptr) visit(as_tensor(to_), true);
  }

 private:
  TensorArg as_tensor(void* address) const {
    TensorArg tensor;
    tensor.address = address;
    tensor.size_data = &size_;
    tensor.stride_data = &stride_;
    tensor.numel = size_;
    tensor.rank = 1;
    tensor.dtype = DType::kU8;
    tensor.contiguous = true;
    return tensor;
  }

  void* to_;
  void* from_;
  int64_t size_;
  int64_t stride_ = 1;
  int delay_us_;
  Body body_;
};

template <class Body>
void queue(const Stream& stream, const char* op, void* to, const void* from, size_t bytes,
           int delay_us, Body body) {
  queue_kernel(stream, std::make_unique<BytesKernel<Body>>(dispatcher().find(op), to, from, bytes,
                                                           delay_us, std::move(body)));
}

}  // namespace

void StressFindings::add(std::string finding) {
  constexpr size_t kKept = 10;
  count_.fetch_add(1, std::memory_order_relaxed);
  const MutexLock guard(mutex_);
  if (first_.size() < kKept) first_.push_back(std::move(finding));
}

std::vector<std::string> StressFindings::first() const {
  const MutexLock guard(mutex_);
  return first_;
}

StressPattern StressPattern::of(uint64_t number) {
  return {mix_bits(number + kGoldenRatio), mix_bits(~number + kGoldenRatio) | 1};
}

void StressPattern::write(void* data, size_t bytes) const {
  auto* out = static_cast<std::byte*>(data);
  const size_t words = bytes / sizeof(uint64_t);
  for (size_t i = 0; i < words; ++i) {
    const uint64_t word = start + i * step;
    std::memcpy(out + i * sizeof(word), &word, sizeof(word));
  }
  const uint64_t last = start + words * step;
  const size_t rest = bytes % sizeof(last);
  if (rest > 0) std::memcpy(out + words * sizeof(last), &last, rest);
}

size_t StressPattern::first_difference(const void* data, size_t bytes) const {
  const auto* in = static_cast<const std::byte*>(data);
  const size_t words = bytes / sizeof(uint64_t);
  const auto differs = [&](size_t i, size_t size) {
    const uint64_t word = start + i * step;
    return std::memcmp(in + i * sizeof(word), &word, size) != 0;
  };
  // Compares whole chunks without branches; only a chunk that differs is searched.
  constexpr size_t kChunk = 512;
  for (size_t begin = 0; begin < words; begin += kChunk) {
    const size_t end = std::min(begin + kChunk, words);
    uint64_t difference = 0;
    for (size_t i = begin; i < end; ++i) {
      uint64_t word = 0;
      std::memcpy(&word, in + i * sizeof(word), sizeof(word));
      difference |= word ^ (start + i * step);
    }
    if (difference == 0) continue;
    while (!differs(begin, sizeof(uint64_t))) ++begin;
    return begin * sizeof(uint64_t);
  }
  const size_t rest = bytes % sizeof(uint64_t);
  return rest > 0 && differs(words, rest) ? words * sizeof(uint64_t) : bytes;
}

StressWork::StressWork(Device device, StressFindings& findings)
    : findings_(findings),
      has_streams_(device.type != DeviceType::kCPU),
      has_kernels_(has_streams_ && require_runtime(device).runs_cpu_kernels()) {}

void StressWork::fill(const Stream& stream, void* data, size_t bytes, const StressPattern& pattern,
                      int delay_us) {
  if (!has_streams_) {
    pattern.write(data, bytes);
  } else if (has_kernels_) {
    queue(stream, "fill_.Scalar", data, nullptr, bytes, delay_us,
          [=] { pattern.write(data, bytes); });
  } else {
    upload(stream, data, bytes, pattern);
  }
}

void StressWork::upload(const Stream& stream, void* data, size_t bytes,
                        const StressPattern& pattern) {
  if (!has_streams_) return pattern.write(data, bytes);
  auto buffer = std::make_shared<std::vector<std::byte>>(bytes);
  pattern.write(buffer->data(), bytes);
  copy_async(stream, data, buffer->data(), bytes, Transfer::kFromCpu);
  stream.add_callback([buffer] {});  // keeps the buffer alive until the copy has completed
}

void StressWork::add(const Stream& stream, void* to, const void* from, size_t bytes) {
  if (!has_streams_) return add_words(to, from, bytes);
  LS_ASSERT(has_kernels_);
  queue(stream, "add_.Tensor", to, from, bytes, 0, [=] { add_words(to, from, bytes); });
}

void StressWork::copy(const Stream& stream, void* to, const void* from, size_t bytes) {
  if (!has_streams_) {
    std::memcpy(to, from, bytes);
  } else {
    copy_async(stream, to, from, bytes, Transfer::kWithin);
  }
}

void StressWork::verify(const Stream& stream, const void* data, size_t bytes,
                        const StressPattern& pattern, const std::string& what, int delay_us) {
  if (!has_streams_) {
    note_difference(findings_, pattern, data, bytes, what);
  } else if (has_kernels_) {
    queue(stream, "equal", nullptr, data, bytes, delay_us,
          [=, &findings = findings_] { note_difference(findings, pattern, data, bytes, what); });
  } else {
    download_and_verify(stream, data, bytes, pattern, what);
  }
}

void StressWork::download_and_verify(const Stream& stream, const void* data, size_t bytes,
                                     const StressPattern& pattern, const std::string& what) {
  if (!has_streams_) return note_difference(findings_, pattern, data, bytes, what);
  auto buffer = std::make_shared<std::vector<std::byte>>(bytes);
  copy_async(stream, buffer->data(), data, bytes, Transfer::kToCpu);
  stream.add_callback([=, &findings = findings_] {
    note_difference(findings, pattern, buffer->data(), bytes, what + ", copied");
  });
}

}  // namespace lockstep
