#include "tests/dist/fake_nccl.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "core/dtype.h"
#include "dist/reduction.h"
#include "kernels/host/host_stream.h"

namespace lockstep::dist {
namespace {

using nccl::DataType;
using nccl::RedOp;
using nccl::Result;
using nccl::UniqueId;

enum class Kind { kAllReduce, kReduce, kReduceScatter, kAllGather, kBroadcast, kSend, kReceive };

DType dtype_of_nccl(DataType type) {
  switch (type) {
    case DataType::kInt8:
      return DType::kI8;
    case DataType::kUint8:
      return DType::kU8;
    case DataType::kInt32:
      return DType::kI32;
    case DataType::kInt64:
      return DType::kI64;
    case DataType::kFloat16:
      return DType::kF16;
    case DataType::kBFloat16:
      return DType::kBF16;
    case DataType::kFloat32:
      return DType::kF32;
    case DataType::kFloat64:
      break;
  }
  return DType::kF64;
}

struct Member;

struct Task {
  Kind kind;
  const void* in;
  void* out;
  size_t count;
  DataType type;
  Reduction reduction;
  int root;  ///< or peer
  uint64_t number;

  size_t bytes() const { return count * size_of(dtype_of_nccl(type)); }
};

/// One collective, as its ranks come to it.
struct Meeting {
  std::vector<const Task*> tasks;
  int came = 0;
  int left = 0;
  bool done = false;
  bool broken = false;  ///< a rank was aborted in it, or the calls do not fit: it hangs
};
struct Letter {
  const void* data;
  size_t bytes;
  bool taken = false;
};

/// A communicator, as all ranks see it.
struct World {
  int size = 0;
  int joined = 0;
  int finalized = 0;
  std::map<uint64_t, Meeting> meetings;
  std::map<std::pair<int, int>, std::deque<std::shared_ptr<Letter>>> letters;
  struct Wish {
    int color;
    int key;
    std::shared_ptr<Member> member;  ///< of the new one
  };
  std::map<int, std::map<int, Wish>> splits;  ///< by number and rank
  std::map<std::vector<int>, std::map<int, std::shared_ptr<Member>>> shrinks;

  bool is_split(int number) const {
    const auto found = splits.find(number);
    return found != splits.end() && static_cast<int>(found->second.size()) == size;
  }
};

/// One rank of it.
struct Member {
  std::shared_ptr<World> world;  ///< null until all ranks of a split have come
  int rank = 0;
  bool aborted = false;
  bool finalized = false;
  int running = 0;  ///< tasks
  int polls = 0;
  int splits = 0;
  uint64_t next = 0;
  std::map<int, double> factors;  ///< of premultiplied sums
};

struct Queued {
  std::shared_ptr<Member> member;
  void* stream;
  Task task;
};
thread_local int t_depth = 0;
thread_local uint64_t t_group = 0;
thread_local std::vector<Queued> t_queued;

FakeNccl::State* g_state = nullptr;

}  // namespace

struct nccl::Comm {
  std::shared_ptr<Member> member;
};

struct FakeNccl::State {
  mutable std::mutex mutex;
  std::condition_variable changed;
  int version = 0;
  int polls = 0;
  bool start_held = false;
  bool operations_held = false;
  std::map<std::string, Result> failures;
  std::map<int, Result> reports;
  std::vector<Call> calls;
  std::map<std::string, int> counts;
  int alive = 0;
  int buffers = 0;
  uint64_t groups = 0;
  uint64_t ids = 0;
  int next_op = 5;
  std::map<std::string, std::shared_ptr<World>> worlds;  ///< by id
  nccl::Config config;
  std::string net_name;

  /// Notes a call; what it shall fail with.
  Result called(const std::string& name) {
    ++counts[name];
    const auto found = failures.find(name);
    if (found == failures.end()) return Result::kSuccess;
    const Result result = found->second;
    failures.erase(found);
    return result;
  }

  void run(const std::shared_ptr<Member>& member, std::vector<Task> tasks);
  void meet(std::unique_lock<std::mutex>& lock, Member& member, const Task& task);
  bool fit(const Meeting& meeting) const;
  void compute(const Meeting& meeting) const;
  Result queue(const char* name, Kind kind, const void* in, void* out, size_t count, DataType type,
               RedOp op, int root, nccl::Comm* comm, void* stream);
  void flush();
  nccl::Comm* add(std::shared_ptr<Member> member) {
    ++alive;
    member->polls = polls;
    return new nccl::Comm{std::move(member)};
  }
  void end(nccl::Comm* comm) {
    std::unique_lock lock(mutex);
    const std::shared_ptr<Member> member = comm->member;
    member->aborted = true;
    changed.notify_all();
    changed.wait(lock, [&] { return member->running == 0; });
    --alive;
    delete comm;
  }
};

void FakeNccl::State::run(const std::shared_ptr<Member>& member, std::vector<Task> tasks) {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return !operations_held || member->aborted; });
  if (member->aborted) return;
  ++member->running;
  World& world = *member->world;
  const int rank = member->rank;
  std::vector<std::shared_ptr<Letter>> sent;
  for (const Task& task : tasks) {
    if (task.kind == Kind::kSend) {
      sent.push_back(std::make_shared<Letter>(Letter{task.in, task.bytes()}));
      world.letters[{rank, task.root}].push_back(sent.back());
    } else if (task.kind != Kind::kReceive) {
      meet(lock, *member, task);
    }
  }
  changed.notify_all();
  for (const Task& task : tasks) {
    if (task.kind != Kind::kReceive || member->aborted) continue;
    auto& letters = world.letters[{task.root, rank}];
    changed.wait(lock, [&] {
      return member->aborted || (!letters.empty() && letters.front()->bytes == task.bytes());
    });
    if (member->aborted) break;
    if (task.bytes() != 0) std::memcpy(task.out, letters.front()->data, task.bytes());
    letters.front()->taken = true;
    letters.pop_front();
    changed.notify_all();
  }
  for (const auto& letter : sent) {
    changed.wait(lock, [&] { return member->aborted || letter->taken; });
    if (letter->taken) continue;
    // Its memory is not to be read any more.
    for (auto& [way, letters] : world.letters) std::erase(letters, letter);
  }
  --member->running;
  changed.notify_all();
}

void FakeNccl::State::meet(std::unique_lock<std::mutex>& lock, Member& member, const Task& task) {
  World& world = *member.world;
  Meeting& meeting = world.meetings[task.number];
  meeting.tasks.resize(static_cast<size_t>(world.size));
  meeting.tasks[static_cast<size_t>(member.rank)] = &task;
  if (++meeting.came == world.size && !meeting.broken) {
    meeting.broken = !fit(meeting);
    if (!meeting.broken) {
      compute(meeting);
      meeting.done = true;
      changed.notify_all();
    }
  }
  changed.wait(lock, [&] { return meeting.done || member.aborted; });
  if (!meeting.done) meeting.broken = true;
  if (++meeting.left == world.size) world.meetings.erase(task.number);
}

bool FakeNccl::State::fit(const Meeting& meeting) const {
  const Task& first = *meeting.tasks[0];
  return std::ranges::all_of(meeting.tasks, [&](const Task* task) {
    return task->kind == first.kind && task->count == first.count && task->type == first.type &&
           task->root == first.root && task->reduction == first.reduction;
  });
}

void FakeNccl::State::compute(const Meeting& meeting) const {
  const size_t n = meeting.tasks.size();
  const Task& first = *meeting.tasks[0];
  const size_t bytes = first.bytes();
  const auto at = [](const void* data, size_t offset) {
    return static_cast<const char*>(data) + offset;
  };
  const auto reduced = [&](size_t offset) {
    std::vector<const void*> sources;
    for (const Task* task : meeting.tasks) sources.push_back(at(task->in, offset));
    std::vector<char> result(bytes);
    reduce(dtype_of_nccl(first.type), first.reduction, sources, result.data(),
           static_cast<int64_t>(first.count));
    return result;
  };
  std::vector<char> whole;
  switch (first.kind) {
    case Kind::kAllReduce:
    case Kind::kReduce:
      whole = reduced(0);
      for (size_t rank = 0; rank < n; ++rank) {
        const bool gets = first.kind == Kind::kAllReduce || rank == static_cast<size_t>(first.root);
        if (gets) std::memcpy(meeting.tasks[rank]->out, whole.data(), bytes);
      }
      return;
    case Kind::kReduceScatter:
      for (size_t rank = 0; rank < n; ++rank) {
        const std::vector<char> part = reduced(rank * bytes);
        whole.insert(whole.end(), part.begin(), part.end());
      }
      for (size_t rank = 0; rank < n; ++rank) {
        std::memcpy(meeting.tasks[rank]->out, whole.data() + rank * bytes, bytes);
      }
      return;
    case Kind::kAllGather:
      for (const Task* task : meeting.tasks) {
        const char* const part = at(task->in, 0);
        whole.insert(whole.end(), part, part + bytes);
      }
      break;
    case Kind::kBroadcast: {
      const char* const root = at(meeting.tasks[static_cast<size_t>(first.root)]->in, 0);
      whole.assign(root, root + bytes);
      break;
    }
    case Kind::kSend:
    case Kind::kReceive:
      return;
  }
  for (const Task* task : meeting.tasks) std::memcpy(task->out, whole.data(), whole.size());
}

Result FakeNccl::State::queue(const char* name, Kind kind, const void* in, void* out, size_t count,
                              DataType type, RedOp op, int root, nccl::Comm* comm, void* stream) {
  {
    const std::lock_guard guard(mutex);
    if (const Result result = called(name); result != Result::kSuccess) return result;
    Member& member = *comm->member;
    Reduction reduction;
    switch (op) {
      case RedOp::kSum:
        break;
      case RedOp::kProduct:
        reduction.op = ReduceOp::kProduct;
        break;
      case RedOp::kMax:
        reduction.op = ReduceOp::kMax;
        break;
      case RedOp::kMin:
        reduction.op = ReduceOp::kMin;
        break;
      default:
        reduction = {ReduceOp::kPremultipliedSum, member.factors.at(static_cast<int>(op))};
    }
    calls.push_back({name, member.rank, member.world->size, count, t_depth > 0 ? t_group : 0, op,
                     static_cast<host::HostStream*>(stream)->priority()});
    const bool meets = kind != Kind::kSend && kind != Kind::kReceive;
    t_queued.push_back({comm->member,
                        stream,
                        {kind, in, out, count, type, reduction, root, meets ? member.next++ : 0}});
  }
  if (t_depth == 0) flush();
  return Result::kSuccess;
}

/// Puts what a group gathered into its streams, each one's part as one piece of work.
void FakeNccl::State::flush() {
  std::vector<Queued> queued = std::exchange(t_queued, {});
  while (!queued.empty()) {
    const std::shared_ptr<Member> member = queued.front().member;
    void* const stream = queued.front().stream;
    std::vector<Task> tasks;
    std::vector<Queued> others;
    for (Queued& each : queued) {
      const bool same = each.member == member && each.stream == stream;
      if (same) {
        tasks.push_back(each.task);
      } else {
        others.push_back(std::move(each));
      }
    }
    queued = std::move(others);
    {
      const std::lock_guard guard(mutex);
      member->polls = polls;
    }
    static_cast<host::HostStream*>(stream)->name().add_callback(
        [this, member, tasks = std::move(tasks)]() mutable { run(member, std::move(tasks)); });
  }
}

// --- NCCL's functions ------------------------------------------------------------------------

namespace {

bool is_valid(const nccl::Config* config) {
  return config != nullptr && config->magic == 0xcafebeef && config->size == sizeof *config &&
         config->blocking == 0;
}

Result get_version(int* version) {
  *version = g_state->version;
  return Result::kSuccess;
}

const char* get_error_string(Result result) {
  return result == Result::kRemoteError ? "remote process exited" : "fake trouble";
}
const char* get_last_error(nccl::Comm*) { return "fake detail"; }

Result get_unique_id(UniqueId* id) {
  const std::lock_guard guard(g_state->mutex);
  if (const Result result = g_state->called("ncclGetUniqueId"); result != Result::kSuccess) {
    return result;
  }
  std::memset(id->bytes, 0, sizeof id->bytes);
  const uint64_t number = ++g_state->ids;
  std::memcpy(id->bytes, &number, sizeof number);
  return Result::kSuccess;
}

Result comm_init(nccl::Comm** comm, int size, UniqueId id, int rank, nccl::Config* config) {
  const std::lock_guard guard(g_state->mutex);
  if (const Result result = g_state->called("ncclCommInitRankConfig"); result != Result::kSuccess) {
    return result;
  }
  if (!is_valid(config)) return Result::kInvalidArgument;
  g_state->config = *config;
  g_state->net_name = config->net_name == nullptr ? "" : config->net_name;
  std::shared_ptr<World>& world = g_state->worlds[std::string(id.bytes, sizeof id.bytes)];
  if (world == nullptr) world = std::make_shared<World>();
  world->size = size;
  ++world->joined;
  auto member = std::make_shared<Member>();
  member->world = world;
  member->rank = rank;
  *comm = g_state->add(std::move(member));
  return Result::kInProgress;
}

Result get_async_error(nccl::Comm* comm, Result* state) {
  const std::lock_guard guard(g_state->mutex);
  Member& member = *comm->member;
  const World* const world = member.world.get();
  *state = Result::kInProgress;
  const auto report = g_state->reports.find(member.rank);
  if (report != g_state->reports.end()) {
    *state = report->second;
  } else if (member.polls > 0) {
    --member.polls;
  } else if (!g_state->start_held && world != nullptr && world->joined == world->size &&
             (member.splits == 0 || world->is_split(member.splits)) &&
             (!member.finalized || world->finalized == world->size)) {
    *state = Result::kSuccess;
  }
  return Result::kSuccess;
}

/// All ranks have come: each color's become a world.
void divide(const std::map<int, World::Wish>& wishes) {
  std::map<int, std::vector<World::Wish>> colors;
  for (const auto& [rank, wish] : wishes) {
    if (wish.color != nccl::kNoColor) colors[wish.color].push_back(wish);
  }
  for (auto& [color, members] : colors) {
    std::ranges::stable_sort(members, {}, &World::Wish::key);
    auto world = std::make_shared<World>();
    world->size = world->joined = static_cast<int>(members.size());
    for (int rank = 0; rank < world->size; ++rank) {
      Member& member = *members[static_cast<size_t>(rank)].member;
      member.rank = rank;
      member.world = world;
    }
  }
}

Result comm_split(nccl::Comm* comm, int color, int key, nccl::Comm** made, nccl::Config* config) {
  const std::lock_guard guard(g_state->mutex);
  if (const Result result = g_state->called("ncclCommSplit"); result != Result::kSuccess) {
    return result;
  }
  if (!is_valid(config)) return Result::kInvalidArgument;
  Member& parent = *comm->member;
  auto member = std::make_shared<Member>();
  if (color != nccl::kNoColor) *made = g_state->add(member);
  World& world = *parent.world;
  world.splits[++parent.splits][parent.rank] = {color, key, member};
  if (world.is_split(parent.splits)) divide(world.splits[parent.splits]);
  return Result::kInProgress;
}

Result comm_shrink(nccl::Comm* comm, int* excluded, int count, nccl::Comm** made,
                   nccl::Config* config, int flags) {
  std::unique_lock lock(g_state->mutex);
  if (const Result result = g_state->called("ncclCommShrink"); result != Result::kSuccess) {
    return result;
  }
  if (!is_valid(config) || flags != nccl::kShrinkAbort) return Result::kInvalidArgument;
  const std::shared_ptr<Member> parent = comm->member;
  parent->aborted = true;
  g_state->changed.notify_all();
  g_state->changed.wait(lock, [&] { return parent->running == 0; });
  World& world = *parent->world;
  auto member = std::make_shared<Member>();
  *made = g_state->add(member);
  std::map<int, std::shared_ptr<Member>>& came =
      world.shrinks[std::vector<int>(excluded, excluded + count)];
  came[parent->rank] = member;
  if (static_cast<int>(came.size()) == world.size - count) {
    std::map<int, World::Wish> wishes;
    for (const auto& [rank, each] : came) wishes[rank] = {0, rank, each};
    divide(wishes);
  }
  return Result::kInProgress;
}

Result comm_finalize(nccl::Comm* comm) {
  const std::lock_guard guard(g_state->mutex);
  (void)g_state->called("ncclCommFinalize");
  comm->member->finalized = true;
  ++comm->member->world->finalized;
  return Result::kInProgress;
}
Result comm_destroy(nccl::Comm* comm) {
  {
    const std::lock_guard guard(g_state->mutex);
    (void)g_state->called("ncclCommDestroy");
  }
  g_state->end(comm);
  return Result::kSuccess;
}
Result comm_abort(nccl::Comm* comm) {
  {
    const std::lock_guard guard(g_state->mutex);
    (void)g_state->called("ncclCommAbort");
  }
  g_state->end(comm);
  return Result::kSuccess;
}

Result comm_register(nccl::Comm*, void* data, size_t, void** handle) {
  const std::lock_guard guard(g_state->mutex);
  if (const Result result = g_state->called("ncclCommRegister"); result != Result::kSuccess) {
    return result;
  }
  ++g_state->buffers;
  *handle = data;
  return Result::kSuccess;
}
Result comm_deregister(nccl::Comm*, void*) {
  const std::lock_guard guard(g_state->mutex);
  (void)g_state->called("ncclCommDeregister");
  --g_state->buffers;
  return Result::kSuccess;
}

template <class T>
double scalar_as(const void* scalar) {
  T value;
  std::memcpy(&value, scalar, sizeof value);
  return static_cast<double>(static_cast<float>(value));
}

Result create_op(RedOp* op, void* scalar, DataType type, nccl::Residence residence,
                 nccl::Comm* comm) {
  const std::lock_guard guard(g_state->mutex);
  (void)g_state->called("ncclRedOpCreatePreMulSum");
  if (residence != nccl::Residence::kHostImmediate) return Result::kInvalidArgument;
  double factor = 0;
  if (type == DataType::kFloat64) std::memcpy(&factor, scalar, sizeof factor);
  if (type == DataType::kFloat32) factor = scalar_as<float>(scalar);
  if (type == DataType::kFloat16) factor = scalar_as<Half>(scalar);
  if (type == DataType::kBFloat16) factor = scalar_as<BFloat16>(scalar);
  const int made = g_state->next_op++;
  comm->member->factors[made] = factor;
  *op = static_cast<RedOp>(made);
  return Result::kSuccess;
}
Result destroy_op(RedOp op, nccl::Comm* comm) {
  const std::lock_guard guard(g_state->mutex);
  (void)g_state->called("ncclRedOpDestroy");
  const bool known = comm->member->factors.erase(static_cast<int>(op)) == 1;
  return known ? Result::kSuccess : Result::kInvalidArgument;
}

Result group_start() {
  const std::lock_guard guard(g_state->mutex);
  if (const Result result = g_state->called("ncclGroupStart"); result != Result::kSuccess) {
    return result;
  }
  if (t_depth++ == 0) t_group = ++g_state->groups;
  return Result::kSuccess;
}
Result group_end() {
  Result result = Result::kSuccess;
  {
    const std::lock_guard guard(g_state->mutex);
    result = g_state->called("ncclGroupEnd");
  }
  if (--t_depth > 0) return Result::kSuccess;
  if (result != Result::kSuccess) {
    t_queued.clear();
    return result;
  }
  g_state->flush();
  return Result::kInProgress;
}

Result all_reduce(const void* in, void* out, size_t count, DataType type, RedOp op,
                  nccl::Comm* comm, void* stream) {
  return g_state->queue("ncclAllReduce", Kind::kAllReduce, in, out, count, type, op, 0, comm,
                        stream);
}
Result reduce_to(const void* in, void* out, size_t count, DataType type, RedOp op, int root,
                 nccl::Comm* comm, void* stream) {
  return g_state->queue("ncclReduce", Kind::kReduce, in, out, count, type, op, root, comm, stream);
}
Result reduce_scatter(const void* in, void* out, size_t count, DataType type, RedOp op,
                      nccl::Comm* comm, void* stream) {
  return g_state->queue("ncclReduceScatter", Kind::kReduceScatter, in, out, count, type, op, 0,
                        comm, stream);
}
Result all_gather(const void* in, void* out, size_t count, DataType type, nccl::Comm* comm,
                  void* stream) {
  return g_state->queue("ncclAllGather", Kind::kAllGather, in, out, count, type, RedOp::kSum, 0,
                        comm, stream);
}
Result broadcast(const void* in, void* out, size_t count, DataType type, int root, nccl::Comm* comm,
                 void* stream) {
  return g_state->queue("ncclBroadcast", Kind::kBroadcast, in, out, count, type, RedOp::kSum, root,
                        comm, stream);
}
Result send(const void* in, size_t count, DataType type, int peer, nccl::Comm* comm, void* stream) {
  return g_state->queue("ncclSend", Kind::kSend, in, nullptr, count, type, RedOp::kSum, peer, comm,
                        stream);
}
Result receive(void* out, size_t count, DataType type, int peer, nccl::Comm* comm, void* stream) {
  return g_state->queue("ncclRecv", Kind::kReceive, nullptr, out, count, type, RedOp::kSum, peer,
                        comm, stream);
}

template <class F>
void* address(F* function) {
  return reinterpret_cast<void*>(function);
}

const std::map<std::string, void*>& functions() {
  static const std::map<std::string, void*> kFunctions = {
      {"ncclGetVersion", address(get_version)},
      {"ncclGetErrorString", address(get_error_string)},
      {"ncclGetLastError", address(get_last_error)},
      {"ncclGetUniqueId", address(get_unique_id)},
      {"ncclCommInitRankConfig", address(comm_init)},
      {"ncclCommFinalize", address(comm_finalize)},
      {"ncclCommDestroy", address(comm_destroy)},
      {"ncclCommAbort", address(comm_abort)},
      {"ncclCommGetAsyncError", address(get_async_error)},
      {"ncclCommSplit", address(comm_split)},
      {"ncclCommShrink", address(comm_shrink)},
      {"ncclCommRegister", address(comm_register)},
      {"ncclCommDeregister", address(comm_deregister)},
      {"ncclRedOpCreatePreMulSum", address(create_op)},
      {"ncclRedOpDestroy", address(destroy_op)},
      {"ncclGroupStart", address(group_start)},
      {"ncclGroupEnd", address(group_end)},
      {"ncclAllReduce", address(all_reduce)},
      {"ncclReduce", address(reduce_to)},
      {"ncclReduceScatter", address(reduce_scatter)},
      {"ncclAllGather", address(all_gather)},
      {"ncclBroadcast", address(broadcast)},
      {"ncclSend", address(send)},
      {"ncclRecv", address(receive)},
  };
  return kFunctions;
}

}  // namespace

FakeNccl::FakeNccl() : state_(std::make_unique<State>()) {
  EXPECT_EQ(g_state, nullptr) << "there is a fake NCCL already";
  g_state = state_.get();
}

FakeNccl::~FakeNccl() {
  EXPECT_EQ(alive(), 0) << "communicators were left behind";
  g_state = nullptr;
}

void* FakeNccl::find(const std::string& name) const {
  const auto found = functions().find(name);
  return missing.contains(name) || found == functions().end() ? nullptr : found->second;
}

std::shared_ptr<const NcclLibrary> FakeNccl::library() const {
  state_->version = version;
  return read_nccl("fake/libnccl.so.2", [this](const char* name) { return find(name); });
}

void FakeNccl::set_polls(int polls) {
  const std::lock_guard guard(state_->mutex);
  state_->polls = polls;
}
void FakeNccl::hold_start(bool hold) {
  const std::lock_guard guard(state_->mutex);
  state_->start_held = hold;
}
void FakeNccl::hold_operations(bool hold) {
  const std::lock_guard guard(state_->mutex);
  state_->operations_held = hold;
  state_->changed.notify_all();
}
void FakeNccl::fail_next(const std::string& function, Result result) {
  const std::lock_guard guard(state_->mutex);
  state_->failures[function] = result;
}
void FakeNccl::report(int rank, Result result) {
  const std::lock_guard guard(state_->mutex);
  state_->reports[rank] = result;
}
std::vector<FakeNccl::Call> FakeNccl::calls() const {
  const std::lock_guard guard(state_->mutex);
  return state_->calls;
}
int FakeNccl::count(const std::string& function) const {
  const std::lock_guard guard(state_->mutex);
  const auto found = state_->counts.find(function);
  return found == state_->counts.end() ? 0 : found->second;
}
int FakeNccl::alive() const {
  const std::lock_guard guard(state_->mutex);
  return state_->alive;
}
int FakeNccl::buffers() const {
  const std::lock_guard guard(state_->mutex);
  return state_->buffers;
}
nccl::Config FakeNccl::last_config() const {
  const std::lock_guard guard(state_->mutex);
  return state_->config;
}
std::string FakeNccl::last_net_name() const {
  const std::lock_guard guard(state_->mutex);
  return state_->net_name;
}

}  // namespace lockstep::dist
