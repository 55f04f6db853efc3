#include "tests/dist/nccl/fake_nccl_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "core/tensor/dtype.h"
#include "kernels/host/host_stream.h"

namespace lockstep::dist {

using fake::Kind;
using fake::Letter;
using fake::Meeting;
using fake::Member;
using fake::Task;
using fake::WindowPlace;
using fake::World;
using nccl::DataType;
using nccl::RedOp;
using nccl::Result;

namespace {

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

/// Whether all ranks called the same operation.
bool fit(const Meeting& meeting) {
  const Task& first = *meeting.tasks[0];
  return std::ranges::all_of(meeting.tasks, [&](const Task* task) {
    return task->kind == first.kind && task->count == first.count && task->type == first.type &&
           task->root == first.root && task->reduction == first.reduction;
  });
}

/// Expects that what others read or write of a rank's memory has the same place in the windows of
/// all ranks: NCCL computes its address from the caller's own.
void expect_symmetry(const Meeting& meeting) {
  const auto place = [](const Task& task) {
    return task.kind == Kind::kReduceScatter ? task.in_window : task.out_window;
  };
  for (const Task* task : meeting.tasks) {
    EXPECT_TRUE(place(*task) == place(*meeting.tasks[0])) << "not at the same place of a window";
  }
}

/// Computes every rank's result, in rank order.
void compute(const Meeting& meeting) {
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

struct Queued {
  std::shared_ptr<Member> member;
  void* stream;
  Task task;
};
thread_local int t_depth = 0;
thread_local uint64_t t_group = 0;
thread_local std::vector<Queued> t_queued;

}  // namespace

size_t fake::Task::bytes() const { return count * size_of(dtype_of_nccl(type)); }

Result FakeNccl::State::called(const std::string& name) {
  ++counts[name];
  const auto found = failures.find(name);
  if (found == failures.end()) return Result::kSuccess;
  const Result result = found->second;
  failures.erase(found);
  return result;
}

nccl::Comm* FakeNccl::State::add(std::shared_ptr<Member> member) {
  ++alive;
  member->polls = polls;
  return new nccl::Comm{std::move(member)};
}

void FakeNccl::State::end(nccl::Comm* comm) {
  std::unique_lock lock(mutex);
  const std::shared_ptr<Member> member = comm->member;
  member->aborted = true;
  member->launches.clear();
  changed.notify_all();
  changed.wait(lock, [&] { return member->running == 0; });
  --alive;
  std::erase_if(windows, [&](const auto& window) { return window->comm == comm; });
  delete comm;
}

Result FakeNccl::State::group_start() {
  const std::lock_guard guard(mutex);
  if (const Result result = called("ncclGroupStart"); result != Result::kSuccess) {
    return result;
  }
  if (t_depth++ == 0) t_group = ++groups;
  return Result::kSuccess;
}

Result FakeNccl::State::group_end() {
  Result result = Result::kSuccess;
  {
    const std::lock_guard guard(mutex);
    result = called("ncclGroupEnd");
  }
  if (--t_depth > 0) return Result::kSuccess;
  if (result != Result::kSuccess) {
    t_queued.clear();
    return result;
  }
  flush();
  return Result::kInProgress;
}

WindowPlace FakeNccl::State::find(const nccl::Comm* comm, const void* data) const {
  for (const auto& window : windows) {
    const auto* const first = static_cast<const char*>(window->data);
    const auto* const at = static_cast<const char*>(data);
    if (window->comm == comm && std::less_equal<>()(first, at) && at < first + window->bytes) {
      return {window->number, static_cast<size_t>(at - first)};
    }
  }
  return {};
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
    const WindowPlace in_window = find(comm, in), out_window = find(comm, out);
    calls.push_back({name, member.rank, member.world->size, count, t_depth > 0 ? t_group : 0, op,
                     static_cast<host::HostStream*>(stream)->priority(),
                     in_window.number >= 0 && out_window.number >= 0});
    const bool meets = kind != Kind::kSend && kind != Kind::kReceive;
    t_queued.push_back({comm->member,
                        stream,
                        {kind, in, out, count, type, reduction, root, meets ? member.next++ : 0,
                         in_window, out_window}});
  }
  if (t_depth == 0) flush();
  return Result::kSuccess;
}

/// Queues the operations of the thread's group, one task per stream.
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
    const auto launch = [this, member, stream, tasks = std::move(tasks)] {
      static_cast<host::HostStream*>(stream)->name().add_callback(
          [this, member, tasks] { run(member, tasks); });
    };
    {
      const std::lock_guard guard(mutex);
      member->polls = polls;
      if (launches_held) {
        member->launches.push_back(launch);
        continue;
      }
    }
    launch();
  }
}

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
    // The sender is aborted, so its memory must not be read any more.
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
      expect_symmetry(meeting);
      compute(meeting);
      meeting.done = true;
      changed.notify_all();
    }
  }
  changed.wait(lock, [&] { return meeting.done || member.aborted; });
  if (!meeting.done) meeting.broken = true;
  if (++meeting.left == world.size) world.meetings.erase(task.number);
}

}  // namespace lockstep::dist
