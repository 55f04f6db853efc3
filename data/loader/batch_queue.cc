#include "data/loader/batch_queue.h"

#include <utility>

#include "core/base/service_thread.h"
#include "core/ops/factory/copy.h"
#include "core/ops/factory/pinned.h"

namespace lockstep::data {

BatchQueue::BatchQueue(SampleReader reader, MakeBatch make, int64_t first, int workers,
                       int64_t ahead, Device device)
    : reader_(std::move(reader)),
      make_(std::move(make)),
      ahead_(ahead),
      device_(device),
      next_(first),
      wanted_(first) {
  try {
    for (int i = 0; i < workers; ++i) {
      threads_.push_back(start_thread("loader", [this] { work(); }));
    }
  } catch (...) {
    // Fewer threads give the same batches.
    if (threads_.empty()) throw;
  }
}

BatchQueue::~BatchQueue() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

std::optional<int64_t> BatchQueue::next_number() {
  UniqueLock lock(mutex_);
  changed_.wait(lock, [&]() LS_REQUIRES(mutex_) { return stop_ || next_ < wanted_ + ahead_; });
  if (stop_) return std::nullopt;
  return next_++;
}

std::optional<BatchQueue::Ticket> BatchQueue::next_ticket() {
  // Numbers are given and read under one lock where reading has an order.
  std::optional<UniqueLock<Mutex>> in_order;
  if (reader_.is_sequential) in_order.emplace(reading_);
  const std::optional<int64_t> number = next_number();
  if (!number) return std::nullopt;
  Ticket ticket{*number, std::nullopt, nullptr};
  try {
    ticket.samples = reader_.read(*number);
  } catch (...) {
    ticket.failure = std::current_exception();
  }
  if (ticket.failure || !ticket.samples) {
    // Nothing comes behind the end, nor behind an error.
    const MutexLock lock(mutex_);
    stop_ = true;
  }
  return ticket;
}

BatchQueue::Prepared BatchQueue::prepare(Ticket ticket, const Stream& side) const {
  Prepared prepared;
  prepared.failure = ticket.failure;
  if (ticket.failure || !ticket.samples) return prepared;
  try {
    Batch batch = make_(ticket.number, std::move(*ticket.samples));
    if (is_asynchronous(device_.type)) {
      const StreamGuard on_side(side);
      for (Tensor& tensor : batch) {
        if (tensor.device() == kCPU) tensor = to(pin_memory(tensor), device_, true);
      }
      prepared.copied.record(side);
    } else {
      for (Tensor& tensor : batch) tensor = tensor.to(device_);
    }
    prepared.batch = std::move(batch);
  } catch (...) {
    prepared.failure = std::current_exception();
  }
  return prepared;
}

void BatchQueue::work() {
  const Stream side =
      is_asynchronous(device_.type) ? get_stream_from_pool(device_) : default_stream(device_);
  while (std::optional<Ticket> ticket = next_ticket()) {
    const int64_t number = ticket->number;
    Prepared prepared = prepare(*std::move(ticket), side);
    {
      const MutexLock lock(mutex_);
      prepared_.insert_or_assign(number, std::move(prepared));
    }
    changed_.notify_all();
  }
}

std::optional<Batch> BatchQueue::take() {
  Prepared prepared;
  {
    UniqueLock lock(mutex_);
    changed_.wait(lock, [&]() LS_REQUIRES(mutex_) { return prepared_.contains(wanted_); });
    prepared = std::move(prepared_.extract(wanted_).mapped());
    ++wanted_;
  }
  changed_.notify_all();
  if (prepared.failure) std::rethrow_exception(prepared.failure);
  if (prepared.batch && prepared.copied.is_recorded()) {
    const Stream stream = current_stream(device_);
    stream.wait_event(prepared.copied);
    for (const Tensor& tensor : *prepared.batch) tensor.record_stream(stream);
  }
  return std::move(prepared.batch);
}

}  // namespace lockstep::data
