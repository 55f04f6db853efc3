#include "tests/dist/nccl/fake_nccl.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "core/tensor/dtype.h"
#include "tests/dist/nccl/fake_nccl_state.h"

namespace lockstep::dist {
namespace {

using fake::Kind;
using fake::Member;
using fake::World;
using nccl::DataType;
using nccl::RedOp;
using nccl::Result;
using nccl::UniqueId;

FakeNccl::State* g_state = nullptr;

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

/// Makes a rank's communicator in the world of these identifiers. Requires the mutex.
Result join_world(nccl::Comm** comm, int size, const std::string& ids, int rank,
                  nccl::Config* config) {
  if (!is_valid(config)) return Result::kInvalidArgument;
  g_state->config = *config;
  g_state->net_name = config->net_name == nullptr ? "" : config->net_name;
  std::shared_ptr<World>& world = g_state->worlds[ids];
  if (world == nullptr) world = std::make_shared<World>();
  world->size = size;
  ++world->joined;
  auto member = std::make_shared<Member>();
  member->world = world;
  member->rank = rank;
  *comm = g_state->add(std::move(member));
  return Result::kInProgress;
}

Result comm_init(nccl::Comm** comm, int size, UniqueId id, int rank, nccl::Config* config) {
  const std::lock_guard guard(g_state->mutex);
  if (const Result result = g_state->called("ncclCommInitRankConfig"); result != Result::kSuccess) {
    return result;
  }
  return join_world(comm, size, std::string(id.bytes, sizeof id.bytes), rank, config);
}

Result comm_init_scalable(nccl::Comm** comm, int size, int rank, int count, UniqueId* ids,
                          nccl::Config* config) {
  const std::lock_guard lock(g_state->mutex);
  if (const Result result = g_state->called("ncclCommInitRankScalable");
      result != Result::kSuccess) {
    return result;
  }
  return join_world(comm, size,
                    std::string(ids->bytes, sizeof(UniqueId) * static_cast<size_t>(count)), rank,
                    config);
}

Result get_async_error(nccl::Comm* comm, Result* state) {
  std::unique_lock lock(g_state->mutex);
  Member& member = *comm->member;
  const World* const world = member.world.get();
  *state = Result::kInProgress;
  const bool holds = !member.launches.empty();
  if (holds && g_state->launches_held && !g_state->reports.contains(member.rank)) {
    return Result::kSuccess;
  }
  if (holds && !g_state->launches_held) {
    const auto launches = std::exchange(member.launches, {});
    lock.unlock();
    for (const auto& launch : launches) launch();
    lock.lock();
  }
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

/// Makes one world per color, once all ranks have called ncclCommSplit.
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

Result mem_alloc(void** data, size_t bytes) {
  const std::lock_guard guard(g_state->mutex);
  if (const Result result = g_state->called("ncclMemAlloc"); result != Result::kSuccess) {
    return result;
  }
  *data = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  std::memset(*data, 0xff, bytes);
  g_state->memory[*data] = bytes;
  return Result::kSuccess;
}
/// Freed while registered, memory is lost: NCCL would crash.
Result mem_free(void* data) {
  const std::lock_guard guard(g_state->mutex);
  (void)g_state->called("ncclMemFree");
  for (const auto& window : g_state->windows) EXPECT_NE(window->data, data) << "with its window";
  EXPECT_EQ(g_state->memory.erase(data), 1u);
  std::free(data);
  return Result::kSuccess;
}
Result window_register(nccl::Comm* comm, void* data, size_t bytes, nccl::Window** window,
                       int flags) {
  const std::lock_guard guard(g_state->mutex);
  if (const Result result = g_state->called("ncclCommWindowRegister"); result != Result::kSuccess) {
    return result;
  }
  const auto found = g_state->memory.find(data);
  if (flags != nccl::kWindowSymmetric || found == g_state->memory.end() || found->second < bytes) {
    return Result::kInvalidArgument;
  }
  g_state->windows.push_back(
      std::make_unique<nccl::Window>(nccl::Window{comm, data, bytes, comm->member->windows++}));
  *window = g_state->windows.back().get();
  return Result::kInProgress;
}
Result window_deregister(nccl::Comm*, nccl::Window* window) {
  const std::lock_guard guard(g_state->mutex);
  (void)g_state->called("ncclCommWindowDeregister");
  const auto gone =
      std::erase_if(g_state->windows, [&](const auto& each) { return each.get() == window; });
  return gone == 1 ? Result::kSuccess : Result::kInvalidArgument;
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

Result group_start() { return g_state->group_start(); }
Result group_end() { return g_state->group_end(); }

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
      {"ncclCommInitRankScalable", address(comm_init_scalable)},
      {"ncclCommFinalize", address(comm_finalize)},
      {"ncclCommDestroy", address(comm_destroy)},
      {"ncclCommAbort", address(comm_abort)},
      {"ncclCommGetAsyncError", address(get_async_error)},
      {"ncclCommSplit", address(comm_split)},
      {"ncclCommShrink", address(comm_shrink)},
      {"ncclCommRegister", address(comm_register)},
      {"ncclCommDeregister", address(comm_deregister)},
      {"ncclMemAlloc", address(mem_alloc)},
      {"ncclMemFree", address(mem_free)},
      {"ncclCommWindowRegister", address(window_register)},
      {"ncclCommWindowDeregister", address(window_deregister)},
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
  EXPECT_EQ(blocks(), 0) << "memory was left behind";
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
void FakeNccl::hold_launches(bool hold) {
  const std::lock_guard guard(state_->mutex);
  state_->launches_held = hold;
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
int FakeNccl::windows() const {
  const std::lock_guard guard(state_->mutex);
  return static_cast<int>(state_->windows.size());
}
int FakeNccl::blocks() const {
  const std::lock_guard guard(state_->mutex);
  return static_cast<int>(state_->memory.size());
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
