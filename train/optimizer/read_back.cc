#include "train/optimizer/read_back.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/pinned.h"

namespace lockstep::train {

namespace {

std::vector<double> numbers(const Tensor& tensor) {
  const auto count = static_cast<size_t>(tensor.numel());
  if (tensor.dtype() == DType::kF64) {
    return {tensor.data<double>(), tensor.data<double>() + count};
  }
  return {tensor.data<float>(), tensor.data<float>() + count};
}

}  // namespace

size_t ReadBack::add(const Tensor& tensor) {
  LS_ASSERT(tensor.is_contiguous());
  const size_t number = values_.size();
  const Device device = tensor.device();
  if (!is_asynchronous(device.type)) {
    values_.push_back(numbers(tensor.to(kCPU)));
    return number;
  }
  values_.emplace_back();
  Tensor copy = empty_pinned(tensor.sizes(), tensor.dtype(), device);
  copy_(copy, tensor.detach(), /*non_blocking=*/true);
  pending_.push_back({number, std::move(copy)});
  const Stream stream = current_stream(device);
  auto copied = std::ranges::find(copied_, stream, &Event::stream);
  if (copied == copied_.end()) copied = copied_.emplace(copied_.end());
  copied->record(stream);
  return number;
}

void ReadBack::wait() {
  for (const Event& copied : copied_) copied.synchronize();
  copied_.clear();
  for (const Pending& pending : pending_) values_[pending.number] = numbers(pending.copy);
  pending_.clear();
}

double read_number(const Tensor& number) {
  ReadBack values;
  values.add(number);
  values.wait();
  return values.values(0)[0];
}

}  // namespace lockstep::train
