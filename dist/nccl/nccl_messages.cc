#include "dist/nccl/nccl_messages.h"

#include <cstring>
#include <utility>

#include "core/base/check.h"
#include "core/device/device_runtime.h"
#include "core/ops/factory/factory.h"
#include "dist/nccl/nccl_calls.h"

namespace lockstep::dist {
namespace {

using Clock = std::chrono::steady_clock;

/// Sent to the receiver before a message.
struct Announcement {
  nccl::UniqueId id{};  ///< in the first message of a channel: id of its communicator
  int64_t count = 0;
  int64_t dtype = 0;
};

Announcement read(const Tensor& tensor) {
  Announcement result;
  std::memcpy(&result, tensor.data(), sizeof result);
  return result;
}

bool is_send(const Operation& operation) { return operation.kind == OpKind::kSend; }

}  // namespace

NcclMessages::NcclMessages(Settings settings, std::unique_ptr<ProcessGroup> announcements)
    : settings_(std::move(settings)), announcements_(std::move(announcements)) {}

void NcclMessages::add(Operation operation, NcclQueued queued) {
  const Device device = settings_.device->device();
  const MutexLock guard(lock_);
  if (failure_) std::rethrow_exception(failure_);
  const Key key{operation.kind, operation.root, operation.user_tag};
  const bool is_first = !channels_.contains(key);
  Channel& channel = channels_[key];
  if (is_first) channel.stream = std::make_unique<OwnedStream>(device, -1);

  Message message;
  message.announcement = empty({static_cast<int64_t>(sizeof(Announcement))}, {DType::kU8, kCPU});
  const int tag = static_cast<int>(operation.user_tag);
  const CollectiveOptions options{.timeout = queued.timeout};
  if (is_send(operation)) {
    Announcement told;
    told.count = operation.count;
    told.dtype = static_cast<int64_t>(operation.dtype);
    if (is_first) {
      const NcclLibrary& library = *settings_.library;
      const nccl::Result result = library.functions.ncclGetUniqueId(&told.id);
      if (result != nccl::Result::kSuccess) {
        std::rethrow_exception(nccl_error(library, result, "ncclGetUniqueId", nullptr));
      }
    }
    std::memcpy(message.announcement.data(), &told, sizeof told);
    message.announced = announcements_->send(message.announcement, operation.root, tag, options);
  } else {
    message.announced = announcements_->recv(message.announcement, operation.root, tag, options);
  }
  message.ready.record(current_stream(device));
  message.since = Clock::now();
  message.operation = std::move(operation);
  message.queued = std::move(queued);
  channel.waiting.push_back(std::move(message));
}

bool NcclMessages::waits() const {
  const MutexLock guard(lock_);
  for (const auto& [key, channel] : channels_) {
    if (!channel.waiting.empty()) return true;
  }
  return false;
}

bool NcclMessages::advance(const std::function<void(NcclQueued)>& launched) {
  const MutexLock guard(lock_);
  bool moved = false;
  for (auto& [key, channel] : channels_) {
    while (advance(channel, launched)) moved = true;
    if (channel.communicator && channel.waiting.empty()) (void)channel.communicator->is_ready();
  }
  return moved;
}

/// Takes the next step of the channel's first message; returns false if it has to wait.
bool NcclMessages::advance(Channel& channel, const std::function<void(NcclQueued)>& launched) {
  if (channel.waiting.empty()) return false;
  Message& message = channel.waiting.front();
  if (!message.announced.is_completed()) return false;
  if (!message.launched) {
    message.announced.wait();
    check_announcement(message);
  }
  if (!channel.communicator) {
    channel.communicator =
        NcclCommunicator::create(settings_.library, 2, is_send(message.operation) ? 0 : 1,
                                 {read(message.announcement).id}, settings_.config);
  }
  if (!channel.communicator->is_ready()) {
    LS_CHECK(Clock::now() < message.since + message.queued.timeout, TimeoutError,
             "[{}] {}: NCCL did not connect with rank {} within {} s.", message.queued.op,
             message.queued.what, message.operation.root,
             std::chrono::duration<double>(message.queued.timeout).count());
    return false;
  }
  if (!message.launched) {
    launch(channel, message);
    return true;
  }
  message.queued.ends.record(channel.stream->get());
  launched(std::move(message.queued));
  channel.waiting.pop_front();
  return true;
}

void NcclMessages::check_announcement(const Message& message) const {
  const Announcement told = read(message.announcement);
  LS_CHECK(told.count == message.operation.count &&
               told.dtype == static_cast<int64_t>(message.operation.dtype),
           MismatchError,
           "[recv] {}: rank {} sends {} elements of {}. Both sides must name one "
           "size and dtype.",
           message.queued.what, message.operation.root, told.count,
           to_string(static_cast<DType>(told.dtype)));
}

void NcclMessages::launch(Channel& channel, Message& message) {
  const Stream stream = channel.stream->get();
  stream.wait_event(message.ready);
  message.queued.begins.record(stream);
  message.launched = true;
  channel.communicator->launch([&](nccl::Comm* comm) {
    Operation operation = message.operation;
    operation.root = is_send(operation) ? 1 : 0;  // peer within the two-rank communicator
    make_nccl_calls({.library = *settings_.library,
                     .comm = comm,
                     .stream = require_runtime(stream.device).native(stream),
                     .rank = 1 - operation.root,
                     .size = 2,
                     .chunk_bytes = settings_.chunk_bytes},
                    operation);
  });
  for (const Tensor& tensor : message.queued.work->tensors) tensor.record_use(stream);
}

std::vector<NcclQueued> NcclMessages::fail(const std::exception_ptr& error) {
  const MutexLock guard(lock_);
  failure_ = error;
  std::vector<NcclQueued> waiting;
  for (auto& [key, channel] : channels_) {
    if (channel.communicator) channel.communicator->abort();
    for (Message& message : channel.waiting) waiting.push_back(std::move(message.queued));
    channel.waiting.clear();
  }
  return waiting;
}

void NcclMessages::finalize() noexcept {
  const MutexLock guard(lock_);
  for (auto& [key, channel] : channels_) {
    if (channel.communicator) channel.communicator->finalize();
  }
}

void NcclMessages::finish(const NcclWait& wait) noexcept {
  const MutexLock guard(lock_);
  for (auto& [key, channel] : channels_) {
    if (channel.communicator) channel.communicator->finish(wait);
  }
}

}  // namespace lockstep::dist
