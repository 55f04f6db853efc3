#include "dist/group/staging.h"

#include <algorithm>
#include <exception>
#include <numeric>
#include <utility>

#include "core/device/transfer.h"
#include "core/ops/factory/pinned.h"
#include "core/tensor/event.h"
#include "dist/collectives/leaf_tree.h"

namespace lockstep::dist {
namespace {

int64_t total(const std::vector<int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

/// Number of elements that rank `rank` of `size` reads from Operation::input; those of one row for
/// a tree_all_reduce.
int64_t elements_read(const Operation& operation, int rank, int size) {
  switch (operation.kind) {
    case OpKind::kAllReduce:
    case OpKind::kReduce:
    case OpKind::kAllGather:
    case OpKind::kSend:
      return operation.count;
    case OpKind::kBroadcast:
      return rank == operation.root ? operation.count : 0;
    case OpKind::kReduceScatter:
      return operation.count * size;
    case OpKind::kAllToAll:
      return total(operation.send_counts);
    case OpKind::kReceive:
    case OpKind::kBarrier:
      break;
  }
  return 0;
}

/// Number of elements that the rank writes to Operation::output.
int64_t elements_written(const Operation& operation, int rank, int size) {
  switch (operation.kind) {
    case OpKind::kAllReduce:
    case OpKind::kReduceScatter:
    case OpKind::kReceive:
      return operation.count;
    case OpKind::kReduce:
      return rank == operation.root ? operation.count : 0;
    case OpKind::kBroadcast:
      return rank == operation.root ? 0 : operation.count;
    case OpKind::kAllGather:
      return operation.count * size;
    case OpKind::kAllToAll:
      return total(operation.receive_counts);
    case OpKind::kSend:
    case OpKind::kBarrier:
      break;
  }
  return 0;
}

}  // namespace

class Staging::Staged {
 public:
  struct Part {
    void* to;
    const void* from;
    size_t bytes;
  };
  std::shared_ptr<WorkState> inner =
      std::make_shared<WorkState>();  ///< of operations on the copies
  std::shared_ptr<WorkState> work;
  std::vector<Tensor> copies;  ///< in pinned memory
  std::vector<Part> written;
  Event copied;
  std::function<void(std::shared_ptr<WorkState>)> begin;
};

Staging::Staging(Device device, int rank, int size)
    : device_(device), rank_(rank), size_(size), to_cpu_(device, -1), from_cpu_(device, -1) {
  beginner_.start("ls-stage-begin", [this] { begin_all(); });
  finisher_.start("ls-stage-end", [this] { finish_all(); });
}

Staging::~Staging() {
  copied_.close();
  beginner_.join();
  begun_.close();
  finisher_.join();
}

void Staging::Queue::push(std::shared_ptr<Staged> staged) {
  const MutexLock guard(lock_);
  waiting_.push_back(std::move(staged));
  changed_.notify_all();
}

void Staging::Queue::close() {
  const MutexLock guard(lock_);
  closed_ = true;
  changed_.notify_all();
}

std::shared_ptr<Staging::Staged> Staging::Queue::next() {
  UniqueLock guard(lock_);
  changed_.wait(guard, [&]() LS_REQUIRES(lock_) { return closed_ || !waiting_.empty(); });
  if (waiting_.empty()) return nullptr;
  std::shared_ptr<Staged> first = std::move(waiting_.front());
  waiting_.pop_front();
  return first;
}

/// Makes the operation use copies and queues the copying of its input.
void Staging::stage(Operation& operation, Staged& staged) const {
  const size_t element = size_of(operation.dtype);
  const auto read = static_cast<size_t>(elements_read(operation, rank_, size_)) * element;
  const auto written = static_cast<size_t>(elements_written(operation, rank_, size_)) * element;
  const bool is_tree = !operation.deal.is_empty();
  const size_t rows = is_tree ? subtrees(operation.deal.of(rank_)).size() : 1;
  const bool in_place = !is_tree && operation.input == operation.output;
  const auto room = [&](size_t bytes) {
    staged.copies.push_back(empty_pinned({static_cast<int64_t>(bytes)}, DType::kU8, device_));
    return static_cast<std::byte*>(staged.copies.back().data());
  };
  const auto* const from = static_cast<const std::byte*>(operation.input);
  std::byte* const output = room(in_place ? std::max(read, written) : written);
  std::byte* const input = in_place ? output : room(rows * read);
  for (size_t row = 0; row < rows; ++row) {
    transfer_bytes(input + row * read, kCPU, from + row * operation.input_stride, device_, read,
                   /*non_blocking=*/true);
  }
  staged.written.push_back({operation.output, output, written});
  operation.input = input;
  operation.output = output;
  if (is_tree) operation.input_stride = read;
}

std::shared_ptr<Staging::Staged> Staging::stage(std::vector<Operation>& operations,
                                                std::shared_ptr<WorkState> work) const {
  auto staged = std::make_shared<Staged>();
  staged->work = std::move(work);
  const Stream& stream = to_cpu_.get();
  stream.wait_stream(current_stream(device_));
  const StreamGuard guard(stream);
  for (Operation& operation : operations) stage(operation, *staged);
  for (const Tensor& tensor : staged->work->tensors) tensor.record_use(stream);
  staged->copied.record(stream);
  return staged;
}

void Staging::start(std::shared_ptr<Staged> staged,
                    std::function<void(std::shared_ptr<WorkState>)> begin) {
  staged->begin = std::move(begin);
  copied_.push(std::move(staged));
}

void Staging::begin_all() {
  while (std::shared_ptr<Staged> staged = copied_.next()) {
    try {
      staged->copied.synchronize();
      std::exchange(staged->begin, {})(staged->inner);
    } catch (...) {
      staged->inner->finish(std::current_exception());
    }
    begun_.push(std::move(staged));
  }
}

void Staging::finish_all() {
  while (const std::shared_ptr<Staged> staged = begun_.next()) {
    staged->inner->wait_until_done();
    finish(*staged);
  }
}

void Staging::finish(Staged& staged) const {
  std::exception_ptr error = staged.inner->error;
  if (!error) {
    try {
      const Stream& stream = from_cpu_.get();
      // The event has been reached already; the wait makes the order visible to the stream
      // sanitizer.
      stream.wait_event(staged.copied);
      const StreamGuard guard(stream);
      for (const Staged::Part& part : staged.written) {
        transfer_bytes(part.to, device_, part.from, kCPU, part.bytes, /*non_blocking=*/true);
      }
      for (const Tensor& tensor : staged.work->tensors) tensor.record_use(stream);
      staged.work->finished.record(stream);
    } catch (...) {
      error = std::current_exception();
    }
  }
  staged.work->finish(error);
}

}  // namespace lockstep::dist
