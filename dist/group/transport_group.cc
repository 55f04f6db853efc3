#include "dist/group/transport_group.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <exception>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "core/base/check.h"
#include "core/base/hash_words.h"
#include "core/base/mutex.h"
#include "core/device/device_runtime.h"
#include "core/device/stream_sanitizer.h"
#include "core/ops/factory/factory.h"
#include "dist/collectives/leaf_tree.h"
#include "dist/group/staging.h"
#include "dist/group/work_state.h"
#include "dist/rendezvous/rank_list.h"

namespace lockstep::dist {
namespace {

/// Tells the stream checker what rank `rank` of `size` reads and writes in `operation`, as a kernel
/// on `stream` would.
void note_uses(const Stream& stream, const Operation& operation, int rank, int size) {
  const auto use = [&](const void* address, int64_t count, bool written) {
    stream_sanitizer::on_use(stream, name(operation.kind), address,
                             static_cast<size_t>(count) * size_of(operation.dtype), written);
  };
  const auto reads = [&](int64_t count) { use(operation.input, count, false); };
  const auto writes = [&](int64_t count) { use(operation.output, count, true); };
  const auto total = [](const std::vector<int64_t>& counts) {
    return std::accumulate(counts.begin(), counts.end(), int64_t{0});
  };
  // One sum of this rank, or those of its subtrees.
  const auto reads_sums = [&](int64_t count) {
    const auto* row = static_cast<const std::byte*>(operation.input);
    const LeafDeal& deal = operation.deal;
    size_t rows = deal.is_empty() ? 1 : subtrees(deal.of(rank)).size();
    for (; rows > 0; --rows, row += operation.input_stride) use(row, count, false);
  };
  switch (operation.kind) {
    case OpKind::kAllReduce:
      if (operation.reduction.leaves > 0) reads_sums(operation.count);
      return writes(operation.count);
    case OpKind::kReceive:
      return writes(operation.count);
    case OpKind::kSend:
      return reads(operation.count);
    case OpKind::kBroadcast:
      return rank == operation.root ? reads(operation.count) : writes(operation.count);
    case OpKind::kReduce:
      return rank == operation.root ? writes(operation.count) : reads(operation.count);
    case OpKind::kReduceScatter:
      reads_sums(operation.count * size);
      return writes(operation.count);
    case OpKind::kAllGather:
      reads(operation.count);
      return writes(operation.count * size);
    case OpKind::kAllToAll:
      reads(total(operation.send_counts));
      return writes(total(operation.receive_counts));
    case OpKind::kBarrier:
      return;
  }
}

class TransportGroup final : public ProcessGroup {
 public:
  TransportGroup(std::shared_ptr<Communicator> communicator,
                 std::shared_ptr<const GroupMembers> members, const char* backend)
      : ProcessGroup(members->rank, static_cast<int>(members->ranks.size()), members->name),
        communicator_(std::move(communicator)),
        members_(std::move(members)),
        backend_(backend) {
    communicator_->recorder().add_group(members_->id, members_->name, members_->ranks);
  }

  ~TransportGroup() override {
    if (std::uncaught_exceptions() > exceptions_) {
      abort("an error on this rank ended the group \"" + name() + "\"");
    }
  }

  const char* backend() const noexcept override { return backend_; }
  std::unique_ptr<ProcessGroup> subgroup(std::vector<int> ranks, std::string name) override;
  std::optional<uint64_t> bytes_sent() const noexcept override {
    return communicator_->bytes_sent();
  }
  std::vector<int> hosts() const {
    std::vector<int> hosts;
    for (int rank = 0; rank < size(); ++rank) hosts.push_back(members_->layout.host_of(rank));
    return hosts;
  }
  void abort(const std::string& reason) noexcept override { communicator_->abort(reason); }
  std::string start_id() const override { return communicator_->start_id(); }
  void set_flight_folder(const std::string& folder) override {
    communicator_->set_flight_folder(folder);
  }

 private:
  Work start(Launch launch) override;
  uint64_t next_number(const Operation& operation) LS_REQUIRES(lock_);
  const Stream& stream(Device device) LS_REQUIRES(lock_);
  const Stream& stream_after_current(const Launch& launch) LS_REQUIRES(lock_);
  Work start_staged(Launch launch, std::shared_ptr<WorkState> work) LS_REQUIRES(lock_);
  std::vector<NumberedOperation> numbered(std::vector<Operation> operations) LS_REQUIRES(lock_);
  void check_ranks(const std::vector<int>& ranks) const;

  std::shared_ptr<Communicator> communicator_;
  std::shared_ptr<const GroupMembers> members_;
  const char* backend_;
  int exceptions_ = std::uncaught_exceptions();

  Mutex lock_;  // held until operations are begun, so that they begin in the order of their numbers
  uint64_t next_ LS_GUARDED_BY(lock_) = 0;
  /// Number of the next message by direction, peer and tag.
  std::map<std::tuple<OpKind, int, uint32_t>, uint64_t> next_messages_ LS_GUARDED_BY(lock_);
  std::map<std::pair<DeviceType, int>, OwnedStream> streams_ LS_GUARDED_BY(lock_);
  std::map<std::pair<DeviceType, int>, std::unique_ptr<Staging>> stagings_ LS_GUARDED_BY(lock_);
};

uint64_t TransportGroup::next_number(const Operation& operation) {
  if (operation.kind != OpKind::kSend && operation.kind != OpKind::kReceive) return next_++;
  return next_messages_[{operation.kind, operation.root, operation.user_tag}]++;
}

const Stream& TransportGroup::stream(Device device) {
  const std::pair key{device.type, static_cast<int>(device.index)};
  auto found = streams_.find(key);
  if (found == streams_.end()) found = streams_.emplace(key, OwnedStream(device, -1)).first;
  return found->second.get();
}

/// Returns the group's stream after making it wait for the current stream.
const Stream& TransportGroup::stream_after_current(const Launch& launch) {
  const Stream& side = stream(launch.device);
  side.wait_stream(current_stream(launch.device));
  if (stream_sanitizer::enabled()) {
    for (const Operation& operation : launch.operations) {
      note_uses(side, operation, rank(), size());
    }
  }
  return side;
}

std::vector<NumberedOperation> TransportGroup::numbered(std::vector<Operation> operations) {
  std::vector<NumberedOperation> result;
  for (Operation& operation : operations) {
    const uint64_t number = next_number(operation);
    result.push_back({std::move(operation), number});
  }
  return result;
}

Work TransportGroup::start_staged(Launch launch, std::shared_ptr<WorkState> work) {
  std::unique_ptr<Staging>& staging = stagings_[{launch.device.type, launch.device.index}];
  if (staging == nullptr) staging = std::make_unique<Staging>(launch.device, rank(), size());
  work->tensors = std::move(launch.tensors);
  work->finished_at_end = true;
  // Stage first: it may throw, and an operation with a number must run.
  std::shared_ptr<Staging::Staged> staged = staging->stage(launch.operations, work);
  std::vector<NumberedOperation> operations = numbered(std::move(launch.operations));
  std::vector<uint64_t> records = communicator_->record(*members_, operations);
  const TimeLimits limits{launch.timeout, timeout()};
  staging->start(std::move(staged), [communicator = communicator_, members = members_, operations,
                                     records, limits](const std::shared_ptr<WorkState>& inner) {
    communicator->begin(members, operations, records, limits, inner);
  });
  return Work(std::move(work));
}

Work TransportGroup::start(Launch launch) {
  if (const std::exception_ptr failure = communicator_->failure()) std::rethrow_exception(failure);
  auto work = std::make_shared<WorkState>();
  work->device = launch.device;

  const MutexLock guard(lock_);
  const bool on_cpu = launch.device.type == DeviceType::kCPU;
  if (!on_cpu && !require_runtime(launch.device).runs_cpu_kernels()) {
    return start_staged(std::move(launch), std::move(work));
  }
  // Get the stream first: it may throw, and an operation with a number must run.
  const Stream side = on_cpu ? Stream() : stream_after_current(launch);
  std::vector<NumberedOperation> operations = numbered(std::move(launch.operations));
  std::vector<uint64_t> records = communicator_->record(*members_, operations);
  const TimeLimits limits{launch.timeout, timeout()};
  if (on_cpu) {
    work->tensors = std::move(launch.tensors);
    communicator_->begin(members_, std::move(operations), std::move(records), limits, work);
    return Work(std::move(work));
  }
  // The stream's thread waits for the communication like for a kernel.
  for (const Tensor& tensor : launch.tensors) work->tensors.push_back(tensor);
  side.add_callback(
      [communicator = communicator_, members = members_, operations, records, limits, work] {
        try {
          communicator->begin(members, operations, records, limits, work);
        } catch (...) {
          work->finish(std::current_exception());
        }
        work->wait_until_done();
      });
  work->finished.record(side);
  for (const Tensor& tensor : launch.tensors) tensor.record_use(side);
  return Work(std::move(work));
}

void TransportGroup::check_ranks(const std::vector<int>& ranks) const {
  std::vector<int> sorted = ranks;
  std::ranges::sort(sorted);
  LS_CHECK(!sorted.empty() && sorted.front() >= 0 && sorted.back() < size() &&
               std::ranges::adjacent_find(sorted) == sorted.end(),
           DistError, "[subgroup] ranks: expected different ranks of 0 to {}, at least one.",
           size() - 1);
}

std::unique_ptr<ProcessGroup> TransportGroup::subgroup(std::vector<int> ranks, std::string name) {
  check_ranks(ranks);
  std::vector<uint64_t> words(ranks.begin(), ranks.end());
  for (const char c : name) words.push_back(static_cast<unsigned char>(c));
  // One max all_reduce compares the arguments and finds an index that is free on every rank.
  const auto wanted = static_cast<int64_t>(hash_words(words));
  const Tensor agreed = empty({3}, DType::kI64);
  auto* const values = agreed.data<int64_t>();
  values[0] = wanted;
  values[1] = ~wanted;  // the maximum is the complement of the smallest value
  values[2] = communicator_->next_group_index();
  all_reduce(agreed, {ReduceOp::kMax}).wait();
  const bool agree = values[0] == wanted && values[1] == ~wanted;
  if (!agree) finish_together(*this);
  LS_CHECK(agree, MismatchError,
           "[subgroup] the ranks of group {} ask for different groups: all must pass the same "
           "ranks, in the same order, and the same name.",
           this->name());
  const auto index = static_cast<uint32_t>(values[2]);
  LS_CHECK(index < kMostGroups, DistError, "[subgroup] expected at most {} groups in a job.",
           kMostGroups);
  communicator_->set_next_group_index(index + 1);

  const auto own = std::ranges::find(ranks, rank());
  if (own == ranks.end()) return nullptr;
  auto members = std::make_shared<GroupMembers>();
  members->id = hash_words(std::array<uint64_t, 3>{members_->id, index, hash_words(words)});
  members->index = index;
  members->name = std::move(name);
  members->rank = static_cast<int>(own - ranks.begin());
  for (const int each : ranks) members->ranks.push_back(members_->ranks[static_cast<size_t>(each)]);
  members->layout = communicator_->layout_of(members->ranks);
  auto group = std::make_unique<TransportGroup>(communicator_, std::move(members), backend_);
  group->set_timeout(timeout());
  return group;
}

}  // namespace

std::vector<int> hosts_of(const ProcessGroup& group) {
  const auto* const known = dynamic_cast<const TransportGroup*>(&group);
  return known == nullptr ? std::vector<int>() : known->hosts();
}

std::unique_ptr<ProcessGroup> transport_group(std::shared_ptr<Communicator> communicator,
                                              const char* backend) {
  auto members = std::make_shared<GroupMembers>();
  members->name = "world";
  members->rank = communicator->rank();
  members->ranks = every_rank(communicator->size());
  members->layout = communicator->layout_of(members->ranks);
  return std::make_unique<TransportGroup>(std::move(communicator), std::move(members), backend);
}

}  // namespace lockstep::dist
