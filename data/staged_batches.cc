#include "data/staged_batches.h"

#include <utility>

#include "core/ops/factory/copy.h"
#include "core/ops/factory/pinned.h"

namespace lockstep::train {

StagedBatches::StagedBatches(Device device, std::vector<Part> parts, Fill fill)
    : device_(device), fill_(std::move(fill)), copy_stream_(default_stream(device)) {
  const bool copies = is_asynchronous(device_.type);
  if (copies) copy_stream_ = get_stream_from_pool(device_);
  for (Slot& slot : slots_) {
    for (const Part& part : parts) {
      slot.source.push_back(copies ? empty_pinned(part.sizes, part.dtype, device_)
                                   : empty_tensor(part.sizes, part.dtype));
    }
    if (!copies) break;  // without copies one buffer is enough
  }
}

StagedBatches::Slot& StagedBatches::send(int64_t batch, int64_t first) {
  Slot& slot = slots_[std::exchange(next_, 1 - next_)];
  slot.batch = -1;            // in case fill_ throws
  slot.copied.synchronize();  // the slot's previous copy, two copies ago, has usually completed
  slot.targets = fill_(batch, first, slot.source);
  const StreamGuard guard(copy_stream_);
  slot.tensors.clear();
  for (const Tensor& part : slot.source) {
    slot.tensors.push_back(empty_tensor(part.sizes(), part.dtype(), device_));
    copy_(slot.tensors.back(), part, /*non_blocking=*/true);
  }
  slot.copied.record(copy_stream_);
  slot.batch = batch;
  slot.first = first;
  return slot;
}

StagedBatches::MicroBatch StagedBatches::get(int64_t batch, int64_t first) {
  if (!is_asynchronous(device_.type)) {
    const int64_t targets = fill_(batch, first, slots_[0].source);
    std::vector<Tensor> tensors;
    for (const Tensor& part : slots_[0].source) tensors.push_back(part.to(device_));
    return {std::move(tensors), targets};
  }
  Slot* found = nullptr;
  for (Slot& slot : slots_) {
    if (slot.batch == batch && slot.first == first) found = &slot;
  }
  if (found == nullptr) found = &send(batch, first);
  found->batch = -1;
  const Stream stream = current_stream(device_);
  stream.wait_event(found->copied);
  for (const Tensor& tensor : found->tensors) tensor.record_stream(stream);
  return {std::exchange(found->tensors, {}), found->targets};
}

void StagedBatches::prefetch_after(int64_t batch, int64_t first, int64_t count, int64_t begin,
                                   int64_t end) {
  if (!is_asynchronous(device_.type)) return;
  if (first == begin) {
    in_order_ = last_batch_ < 0 || batch == last_batch_ + 1;
    last_batch_ = batch;
  }
  if (first + count < end) {
    send(batch, first + count);
  } else if (in_order_) {
    send(batch + 1, begin);
  }
}

}  // namespace lockstep::train
