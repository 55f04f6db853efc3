#include "dist/nccl/nccl_group.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <map>
#include <tuple>
#include <utility>

#include "autograd/grad_mode.h"
#include "core/base/check.h"
#include "core/base/hash_words.h"
#include "core/base/mutex.h"
#include "core/device/active_capture.h"
#include "core/device/device_runtime.h"
#include "core/device/spared_processors.h"
#include "core/device/stream_sanitizer.h"
#include "core/ops/factory/factory.h"
#include "core/ops/pointwise/pointwise.h"
#include "core/ops/reduce/reduce.h"
#include "dist/group/agreement.h"
#include "dist/group/transport_group.h"
#include "dist/group/work_state.h"
#include "dist/nccl/nccl_calls.h"
#include "dist/nccl/nccl_comparison.h"
#include "dist/nccl/nccl_job.h"
#include "dist/nccl/nccl_memory.h"
#include "dist/nccl/nccl_messages.h"
#include "dist/nccl/nccl_replays.h"
#include "dist/nccl/nccl_start.h"
#include "dist/nccl/nccl_tree.h"
#include "dist/nccl/nccl_watch.h"
#include "dist/nccl/nccl_widened.h"
#include "dist/rendezvous/rank_list.h"

namespace lockstep::dist {
namespace {

using Clock = std::chrono::steady_clock;

/// Time that the destructor waits for the other ranks to destroy their groups.
constexpr std::chrono::seconds kFinishLimit{30};

bool is_message(OpKind kind) { return kind == OpKind::kSend || kind == OpKind::kReceive; }

/// Identity of a group.
struct Identity {
  uint64_t id = 0;         ///< equal on its ranks and unique in the job
  std::vector<int> ranks;  ///< ranks of the job
};

class Group final : public NcclGroup {
 public:
  /// Collective over `base`.
  Group(NcclJob job, Identity identity, std::unique_ptr<ProcessGroup> base,
        NcclCommunicator::Pointer nccl);
  ~Group() override;

  const char* backend() const noexcept override { return "nccl"; }
  bool adds_in_one_order() const noexcept override { return false; }
  std::unique_ptr<ProcessGroup> subgroup(std::vector<int> ranks, std::string name) override;
  std::optional<uint64_t> bytes_sent() const noexcept override { return std::nullopt; }
  void abort(const std::string& reason) noexcept override { job_.communicator->abort(reason); }
  std::string start_id() const override { return job_.communicator->start_id(); }
  void set_flight_folder(const std::string& folder) override {
    job_.communicator->set_flight_folder(folder);
  }
  Ref<Storage> registered_memory(size_t bytes, Device device) override;
  NcclBuffer register_buffer(const Tensor& tensor) override;
  std::unique_ptr<NcclGroup> shrink(std::vector<int> excluded,
                                    std::shared_ptr<Communicator> remaining) override;

 private:
  /// An operation that the launcher has still to queue.
  struct Pending {
    Launch launch;
    NcclQueued queued;
    Event ready;   ///< end of the work queued before it on the caller's stream
    Event begins;  ///< the same on the group's stream
    std::shared_ptr<WorkState> work = std::make_shared<WorkState>();
    bool is_barrier = false;
  };

  Work start(Launch launch) override;
  Work start_on_cpu(Launch launch);
  Work start_message(Launch launch) LS_REQUIRES(order_);
  void check_device(const Launch& launch) const;
  void check_usable() const;
  void check_values(const Launch& launch) const;
  bool launches_at_once() const;
  void begin(Pending& pending) const;
  void queue(Pending& pending) noexcept;
  void queue_on_side(const Pending& pending);
  void enqueue(const std::vector<Operation>& operations, const Pending& pending);
  NcclQueued note(const std::vector<Operation>& operations, std::chrono::milliseconds timeout)
      LS_REQUIRES(order_);
  void tell_sanitizer(const Launch& launch) const;
  void end() noexcept;

  const NcclJob job_;
  const Identity identity_;
  const std::unique_ptr<ProcessGroup> base_;  ///< the same ranks, for tensors of the cpu
  const std::shared_ptr<NcclCommunicator> nccl_;
  const int exceptions_ = std::uncaught_exceptions();
  OwnedStream side_;
  void* const native_side_;
  Tensor token_;  ///< dummy element that a barrier reduces
  NcclMessages messages_;

  /// Held while operations are numbered and given to the launcher, which does not take it: not
  /// while NCCL is waited for.
  Mutex order_;
  uint64_t next_ LS_GUARDED_BY(order_) = 0;
  /// Number of the next message by direction, peer and tag.
  std::map<std::tuple<OpKind, int, uint32_t>, uint64_t> next_messages_ LS_GUARDED_BY(order_);
  uint64_t subgroups_ LS_GUARDED_BY(order_) = 0;
  /// Set by `end` or `shrink`, which must not wait for the lock: `subgroup` holds it and may wait
  /// for the ranks that are left out.
  std::atomic<bool> ended_ = false;
  std::atomic<bool> no_buffers_ = false;  ///< whether memory was asked for in vain

  const std::shared_ptr<const NcclReplayHooks> replays_;
  NcclComparison comparison_;  // used by the watch's thread
  NcclWatch watch_;
};

Group::Group(NcclJob job, Identity identity, std::unique_ptr<ProcessGroup> base,
             NcclCommunicator::Pointer nccl)
    : NcclGroup(base->rank(), base->size(), base->name()),
      job_(std::move(job)),
      identity_(std::move(identity)),
      base_(std::move(base)),
      nccl_(std::move(nccl)),
      // High priority: other ranks wait for communication, so it goes before compute kernels.
      side_(job_.device->device(), -1),
      native_side_(require_runtime(job_.device->device()).native(side_.get())),
      messages_({job_.library, job_.device, job_.options.config, job_.options.chunk_bytes},
                base_->subgroup(every_rank(size()), name() + " messages")),
      replays_(std::make_shared<NcclReplayHooks>(NcclReplayHooks{
          .check = [this] { check_usable(); },
          .note =
              [this](const std::vector<Operation>& operations, std::chrono::milliseconds timeout) {
                const MutexLock guard(order_);
                return note(operations, timeout);
              },
          .watch = [this](NcclQueued queued) { watch_.add(std::move(queued)); }})),
      comparison_(job_.communicator, identity_.id, identity_.ranks, this->rank()),
      watch_(job_.communicator,
             {.advance =
                  [this] {
                    const NcclDevice::Scope scope(*job_.device);
                    comparison_.look();
                    (void)nccl_->is_ready();
                    return messages_.advance(
                        [this](NcclQueued queued) { watch_.add(std::move(queued)); });
                  },
              .waits = [this] { return messages_.waits(); },
              .fail =
                  [this](const std::exception_ptr& error) {
                    if (!job_.options.keep_for_shrink) nccl_->abort();
                    return messages_.fail(error);
                  }},
             job_.heartbeat->add(this->name())) {
  const StreamGuard guard(side_.get());
  token_ = empty({1}, {DType::kU8, job_.device->device()});
  job_.communicator->recorder().add_group(identity_.id, name() + " (nccl)", identity_.ranks);
}

Group::~Group() {
  if (std::uncaught_exceptions() > exceptions_) {
    abort("an error on this rank ended the group \"" + name() + "\"");
  }
  end();
}

/// Waits for pending operations and ends the communicators.
void Group::end() noexcept {
  if (ended_.exchange(true)) return;
  job_.launcher->drain();
  const bool is_well = watch_.drain() && job_.communicator->failure() == nullptr;
  watch_.stop();
  if (is_well) {
    // Finalize all communicators before waiting for any: the order of waits then cannot deadlock.
    nccl_->finalize();
    messages_.finalize();
    const NcclWait wait = job_.wait("destroy", "group " + name(), kFinishLimit);
    nccl_->finish(wait);
    messages_.finish(wait);
  }
  nccl_->abort();
}

void Group::check_device(const Launch& launch) const {
  const Device own = job_.device->device();
  LS_CHECK(launch.device == own, DeviceError,
           "[{}] the nccl group {} takes tensors of the cpu and of {}, got one on {}.",
           dist::name(launch.operations.front().kind), name(), to_string(own),
           to_string(launch.device));
}

/// Fails the job if a NaN is in what this rank gives.
void Group::check_values(const Launch& launch) const {
  const NoGradGuard no_grad;
  for (const Operation& operation : launch.operations) {
    if (operation.kind == OpKind::kReceive) continue;
    const bool gives = operation.kind != OpKind::kBroadcast || operation.root == rank();
    const auto found = std::ranges::find(launch.tensors, operation.input,
                                         [](const Tensor& tensor) { return tensor.data(); });
    if (!gives || found == launch.tensors.end() || !is_floating(found->dtype())) continue;
    if (!any(isnan(*found)).item<bool>()) continue;
    job_.fail_job_on_error([&] {
      throw DistError(fmt::format(
          "[{}] rank {} gives NaN to group {}, in {}. Look for where it comes from before: the "
          "first layer with a NaN, the data of this step.",
          dist::name(operation.kind), rank(), name(), to_string(*found)));
    });
  }
}

void Group::check_usable() const {
  if (const std::exception_ptr failure = job_.communicator->failure()) {
    std::rethrow_exception(failure);
  }
  LS_CHECK(!ended_, DistError, "[{}] the group has been shrunk: use the one that came of it.",
           name());
}

/// Records operations of one call in the flight recorder and describes them for errors.
NcclQueued Group::note(const std::vector<Operation>& operations,
                       std::chrono::milliseconds timeout) {
  NcclQueued queued;
  queued.timeout = timeout;
  for (const Operation& operation : operations) {
    const uint64_t number =
        is_message(operation.kind)
            ? next_messages_[{operation.kind, operation.root, operation.user_tag}]++
            : next_++;
    const Signature signature = signature_of(operation, identity_.id, number);
    if (queued.what.empty()) {
      queued.op = dist::name(operation.kind);
      queued.what = fmt::format("{} in group {}", to_string(signature), name());
      if (operations.size() > 1) {
        queued.what += fmt::format(" (with {} more)", operations.size() - 1);
      }
    }
    queued.records.push_back(job_.communicator->recorder().queued(
        signature, name() + " (nccl)", static_cast<uint32_t>(operations.size()),
        operation.user_tag));
  }
  return queued;
}

/// Reports the operations' uses of memory to the stream sanitizer, as they are not kernels.
void Group::tell_sanitizer(const Launch& launch) const {
  if (!stream_sanitizer::enabled()) return;
  const char* const op = dist::name(launch.operations.front().kind);
  for (const Tensor& tensor : launch.tensors) {
    const bool written = std::ranges::any_of(launch.operations, [&](const Operation& operation) {
      return operation.kind != OpKind::kSend && operation.output == tensor.data();
    });
    // The rows of a tree_all_reduce's sums need not be adjacent.
    const int64_t rows = tensor.is_contiguous() ? 1 : tensor.size(0);
    const auto* row = static_cast<const std::byte*>(tensor.data());
    for (int64_t i = 0; i < rows; ++i) {
      stream_sanitizer::on_use(side_.get(), op, row, tensor.nbytes() / static_cast<size_t>(rows),
                               written && i == 0);
      if (rows > 1) row += launch.operations.front().input_stride;
    }
  }
}

/// Queues operations as one NCCL group of calls.
void Group::enqueue(const std::vector<Operation>& operations, const Pending& pending) {
  if (operations.empty()) return;
  nccl_->launch([&](nccl::Comm* comm) {
    const NcclPlace place{*job_.library, comm,   native_side_,
                          rank(),        size(), job_.options.chunk_bytes};
    for (const Operation& operation : operations) make_nccl_calls(place, operation);
  });
  const char* const op = dist::name(operations.front().kind);
  nccl_->wait_ready(job_.wait(op, pending.queued.what, pending.launch.timeout));
}

/// Whether the caller makes NCCL's calls itself: where the ranks compare each call before, or the
/// calls belong to what this thread records or checks.
bool Group::launches_at_once() const {
  return job_.options.compare_calls || stream_sanitizer::enabled() || active_capture() != nullptr;
}

Work Group::start(Launch launch) {
  const OpKind kind = launch.operations.front().kind;
  const bool is_barrier = kind == OpKind::kBarrier;
  if (launch.device.type == DeviceType::kCPU && !is_barrier) return start_on_cpu(std::move(launch));
  if (!is_barrier) check_device(launch);

  const NcclDevice::Scope scope(*job_.device);
  if (job_.options.check_values && !is_barrier) check_values(launch);
  const MutexLock guard(order_);
  check_usable();
  if (is_message(kind)) return start_message(std::move(launch));
  const auto pending = std::make_shared<Pending>();
  const bool at_once = launches_at_once();
  if (at_once) job_.launcher->drain();
  pending->ready.record(current_stream(side_.get().device));
  if (at_once) {
    begin(*pending);
    tell_sanitizer(launch);  // before `note`: it may throw, and an operation with a number must run
  }
  pending->queued = note(launch.operations, launch.timeout);
  pending->queued.waited_for = is_barrier;
  pending->is_barrier = is_barrier;
  if (is_barrier) {
    // A reduction of one element ends only after all ranks have called it. As `finished` is not
    // recorded, Work waits on the host.
    Operation meeting;
    meeting.kind = OpKind::kAllReduce;
    meeting.reduction = {ReduceOp::kMax};
    meeting.count = 1;
    meeting.input = meeting.output = token_.data();
    launch.operations.front() = std::move(meeting);
    launch.tensors.clear();
  }
  const std::shared_ptr<WorkState> work = pending->work;
  work->device = launch.device;
  work->tensors = launch.tensors;
  pending->launch = std::move(launch);

  if (at_once) {
    if (active_capture() != nullptr) {
      // What is captured ends at once for the watch, as its events do.
      watch_nccl_replays(replays_, pending->launch.operations, pending->launch.timeout);
    }
    queue(*pending);
    if (work->is_done() && work->error) std::rethrow_exception(work->error);
  } else {
    work->queued = 0;
    job_.launcher->add([this, pending] { queue(*pending); });
  }
  return Work(work);
}

void Group::begin(Pending& pending) const {
  side_.get().wait_event(pending.ready);
  pending.begins.record(side_.get());
}

/// Queues an operation, and gives it to the watch. An error is that of its Work, and the job's.
void Group::queue(Pending& pending) noexcept {
  NcclQueued& queued = pending.queued;
  const std::shared_ptr<WorkState> work = pending.work;
  const Stream side = side_.get();
  // From then on the memory is its Work's alone.
  const auto mark_tensors = [&] {
    for (const Tensor& tensor : pending.launch.tensors) tensor.record_use(side);
    pending.launch.tensors.clear();
  };
  try {
    const NcclDevice::Scope scope(*job_.device);
    job_.fail_job_on_error([&] {
      if (const std::exception_ptr failure = job_.communicator->failure()) {
        std::rethrow_exception(failure);
      }
      if (!pending.begins.is_recorded()) begin(pending);
      queued.begins = std::move(pending.begins);
      if (job_.options.compare_calls) {
        compare_nccl_calls(*base_, queued.op, queued.what, {.timeout = pending.launch.timeout});
      }
      queue_on_side(pending);
      if (!pending.is_barrier) work->finished.record(side);
      queued.ends.record(side);
      mark_tensors();
    });
    queued.work = work;
    watch_.add(std::move(queued));
    work->set_queued();
  } catch (...) {
    const std::exception_ptr error = std::current_exception();
    try {
      mark_tensors();
    } catch (const std::exception&) {
      // The device has failed; its memory is not used again.
    }
    for (const uint64_t record : queued.records) {
      job_.communicator->recorder().ended(record, true);
    }
    watch_.wake();  // the watch aborts the communicator, in which other ranks may wait
    work->finish(error);
  }
}

/// Queues the work of an operation between its two events.
void Group::queue_on_side(const Pending& pending) {
  const StreamGuard on_side(side_.get());
  const NoGradGuard no_grad;
  const Launch& launch = pending.launch;
  const Operation& first = launch.operations.front();
  if (first.reduction.leaves > 0) {
    const NcclTree tree(first, launch.tensors.front(), launch.tensors.back(), rank(), size());
    enqueue(tree.exchange(), pending);
    tree.add_up();
    enqueue(tree.gather(), pending);
  } else {
    const NcclWidened widened(launch.operations, launch.tensors, rank(), size());
    enqueue(widened.operations(), pending);
    widened.narrow();
  }
}

/// Passes a validated launch on to the transport group.
Work Group::start_on_cpu(Launch launch) {
  struct Starter : ProcessGroup {
    static Work pass_on(ProcessGroup& group, Launch launch) {
      return (group.*&Starter::start)(std::move(launch));
    }
  };
  return Starter::pass_on(*base_, std::move(launch));
}

Work Group::start_message(Launch launch) {
  NcclQueued queued = note(launch.operations, launch.timeout);
  auto work = std::make_shared<WorkState>();
  work->device = launch.device;
  work->tensors = std::move(launch.tensors);
  queued.work = work;
  queued.waited_for = true;
  messages_.add(std::move(launch.operations.front()), std::move(queued));
  watch_.wake();
  return Work(std::move(work));
}

std::unique_ptr<ProcessGroup> Group::subgroup(std::vector<int> ranks, std::string name) {
  const NcclDevice::Scope scope(*job_.device);
  std::unique_ptr<ProcessGroup> base = base_->subgroup(ranks, name);  // compares the arguments
  const auto own = std::ranges::find(ranks, rank());
  const bool is_member = own != ranks.end();

  const MutexLock guard(order_);
  check_usable();
  Identity identity{hash_words(std::array<uint64_t, 2>{identity_.id, ++subgroups_}), {}};
  for (const int each : ranks) {
    identity.ranks.push_back(identity_.ranks[static_cast<size_t>(each)]);
  }
  NcclCommunicator::Pointer nccl;
  job_.launcher->run([&] {
    const NcclDevice::Scope on_launcher(*job_.device);
    nccl = job_.fail_job_on_error([&] {
      return nccl_->split(is_member ? 0 : nccl::kNoColor, static_cast<int>(own - ranks.begin()),
                          job_.options.config,
                          job_.wait("subgroup", "group " + name, job_.options.start_timeout));
    });
  });
  if (!is_member) return nullptr;
  auto group = std::make_unique<Group>(job_, std::move(identity), std::move(base), std::move(nccl));
  group->set_timeout(timeout());
  return group;
}

Ref<Storage> Group::registered_memory(size_t bytes, Device device) {
  if (!job_.options.user_buffers || device != job_.device->device() || no_buffers_) return {};
  check_usable();
  std::string why;
  const auto agree = [&](const std::string& own) {
    const std::vector<std::string> reasons =
        all_gather_texts(*base_, own, {.timeout = job_.options.start_timeout});
    for (size_t rank = 0; rank < reasons.size() && why.empty(); ++rank) {
      if (!reasons[rank].empty()) why = fmt::format("rank {}: {}", rank, reasons[rank]);
    }
    return why;
  };
  Ref<Storage> memory = job_.fail_job_on_error([&] {
    return registered_nccl_memory(
        job_, nccl_, bytes,
        job_.wait("register", "memory of group " + name(), job_.options.start_timeout), agree);
  });
  if (memory == nullptr && !no_buffers_.exchange(true) && rank() == 0 &&
      job_.options.on_no_buffers) {
    job_.options.on_no_buffers(why);
  }
  return memory;
}

NcclBuffer Group::register_buffer(const Tensor& tensor) {
  LS_CHECK(tensor.defined() && tensor.device() == job_.device->device(), DeviceError,
           "[register_buffer] expected a tensor on {}, got {}.", to_string(job_.device->device()),
           tensor.defined() ? to_string(tensor.device()) : "none");
  LS_CHECK(tensor.is_contiguous(), ShapeError,
           "[register_buffer] expected a dense, row-major tensor, got sizes {} with strides {}.",
           tensor.shape(), to_string(tensor.strides()));
  return {job_.launcher, nccl_, tensor};
}

std::unique_ptr<NcclGroup> Group::shrink(std::vector<int> excluded,
                                         std::shared_ptr<Communicator> remaining) {
  std::ranges::sort(excluded);
  LS_CHECK(!excluded.empty() && excluded.front() >= 0 && excluded.back() < size() &&
               std::ranges::adjacent_find(excluded) == excluded.end() &&
               !std::ranges::binary_search(excluded, rank()),
           DistError,
           "[shrink] excluded: expected different ranks of 0 to {}, at least one, and not this "
           "one, {}.",
           size() - 1, rank());
  const auto before = std::ranges::lower_bound(excluded, rank()) - excluded.begin();
  const auto left = size() - static_cast<int>(excluded.size());
  LS_CHECK(remaining->size() == left && remaining->rank() == rank() - static_cast<int>(before),
           DistError,
           "[shrink] remaining: expected the communication of {} ranks, and this one as rank {}, "
           "got {} and {}.",
           left, rank() - static_cast<int>(before), remaining->size(), remaining->rank());
  LS_CHECK(!ended_, DistError, "[shrink] the group has been shrunk already.");

  const NcclDevice::Scope scope(*job_.device);
  NcclJob job = job_;
  job.communicator = std::move(remaining);
  job.launcher = std::make_shared<NcclLauncher>();
  job.heartbeat = std::make_shared<NcclHeartbeat>(job.communicator, job.options.heartbeat_limit);
  return job.fail_job_on_error([&] {
    NcclCommunicator::Pointer nccl =
        nccl_->shrink(excluded, job.options.config,
                      job.wait("shrink", "group " + name(), job.options.start_timeout));
    const MutexLock guard(order_);
    // Operations still pending in the old group will not end by themselves.
    ended_ = true;
    watch_.stop();
    nccl_->abort();
    job_.launcher->drain();
    const auto ended = std::make_exception_ptr(DistError("[nccl] the group has been shrunk."));
    for (const NcclQueued& message : messages_.fail(ended)) message.work->finish(ended);
    std::vector<uint64_t> words{identity_.id};
    for (const int each : excluded) words.push_back(static_cast<uint64_t>(each));
    auto group =
        std::make_unique<Group>(job, Identity{hash_words(words), every_rank(left)},
                                transport_group(job.communicator, "nccl"), std::move(nccl));
    group->set_timeout(timeout());
    return std::unique_ptr<NcclGroup>(std::move(group));
  });
}

/// Makes NCCL connect the ranks, as it does at their first operations otherwise.
void connect_ranks(ProcessGroup& group, Device device, std::chrono::milliseconds timeout) {
  const NoGradGuard no_grad;
  const CollectiveOptions options{.timeout = timeout};
  // NCCL connects ranks anew for each of its algorithms, which sizes choose.
  for (const int64_t bytes : {int64_t{4}, int64_t{16} << 20}) {
    group.all_reduce(zeros({bytes / 4}, {DType::kF32, device}), {}, options).synchronize();
  }
}

}  // namespace

std::unique_ptr<NcclGroup> nccl_group(std::shared_ptr<Communicator> communicator,
                                      std::shared_ptr<const NcclLibrary> library,
                                      std::shared_ptr<const NcclDevice> device,
                                      const NcclOptions& options) {
  std::unique_ptr<ProcessGroup> base = transport_group(communicator, "nccl");
  return nccl_group(std::move(communicator), std::move(base), std::move(library), std::move(device),
                    options);
}

std::unique_ptr<NcclGroup> nccl_group(std::shared_ptr<Communicator> communicator,
                                      std::unique_ptr<ProcessGroup> base,
                                      std::shared_ptr<const NcclLibrary> library,
                                      std::shared_ptr<const NcclDevice> device,
                                      const NcclOptions& options) {
  const NcclJob job{std::move(communicator), std::move(library), std::move(device), options};
  const std::vector<nccl::UniqueId> ids = exchange_nccl_start(
      *base, *job.library, *job.device, options.ranks_of_an_id, {.timeout = options.start_timeout});
  const NcclDevice::Scope scope(*job.device);
  NcclCommunicator::Pointer nccl = job.fail_job_on_error([&] {
    NcclCommunicator::Pointer made =
        NcclCommunicator::create(job.library, base->size(), base->rank(), ids, job.options.config);
    made->wait_ready(job.wait("nccl", "group " + base->name(), options.start_timeout));
    return made;
  });
  std::array<uint64_t, sizeof(nccl::UniqueId) / sizeof(uint64_t)> words{};
  std::memcpy(words.data(), ids.front().bytes, sizeof(nccl::UniqueId));
  Identity identity{hash_words(words), every_rank(base->size())};
  auto group = std::make_unique<Group>(job, std::move(identity), std::move(base), std::move(nccl));
  if (options.connect_at_start) {
    connect_ranks(*group, job.device->device(), options.start_timeout);
  }
  if (group->size() > 1) spare_processors(options.spared_processors);
  return group;
}

}  // namespace lockstep::dist
