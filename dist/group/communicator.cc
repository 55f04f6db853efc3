#include "dist/group/communicator.h"

#include <fmt/core.h>

#include <utility>

#include "core/base/blocked_signals.h"
#include "core/base/check.h"
#include "core/base/service_thread.h"
#include "dist/group/communicator_state.h"

namespace lockstep::dist {

using std::chrono::milliseconds;

Communicator::Communicator(std::function<Connections()> connect, Options options)
    : state_(std::make_shared<State>(std::move(options))) {
  State& state = *state_;
  std::future<void> connected = state.connected.get_future();
  {
    const BlockedSignals signals;
    state.thread =
        start_thread("of the communicator",
                     [own = state_, connect = std::move(connect)] { own->main(connect); });
  }
  const std::optional<milliseconds> limit = state.options.start_limit;
  if (limit && connected.wait_for(*limit) != std::future_status::ready) {
    {
      const MutexLock guard(state.lock);
      state.stopping = true;
    }
    state.thread.detach();  // the call that it waits in cannot be interrupted
    throw TimeoutError(fmt::format(
        "[dist] this rank is not connected with the others after {} s: expected all ranks to come. "
        "One may not have been started, or have ended early: see what they say.",
        std::chrono::duration<double>(*limit).count()));
  }
  try {
    connected.get();
  } catch (...) {
    state.thread.join();
    throw;
  }
  state.control->listen({
      .on_message =
          [&state](int from, std::string text) {
            const MutexLock guard(state.lock);
            state.notes.push_back({from, std::move(text)});
            state.tell();
          },
      .on_failure =
          [&state](const Failure& failure) {
            const MutexLock guard(state.lock);
            if (!state.reported_failure) state.reported_failure = failure;
            state.tell();
          },
  });
}

Communicator::~Communicator() {
  {
    const MutexLock guard(state_->lock);
    state_->stopping = true;
    state_->tell();
  }
  state_->common_end.join(state_->thread, state_->options.on_delay);
}

int Communicator::rank() const { return state_->control->rank(); }
int Communicator::size() const { return state_->control->size(); }

HostLayout Communicator::layout_of(std::span<const int> ranks) const {
  std::vector<int> names;
  for (const int rank : ranks) {
    names.push_back(state_->hosts.empty() ? 0 : state_->hosts[static_cast<size_t>(rank)]);
  }
  return HostLayout(names);
}

FlightRecorder& Communicator::recorder() const { return *state_->recorder; }
uint64_t Communicator::bytes_sent() const noexcept { return state_->bytes_sent; }
const std::string& Communicator::start_id() const { return state_->start; }
void Communicator::set_end_limit(milliseconds limit) noexcept {
  state_->common_end.set_limit(limit);
}

void Communicator::set_flight_folder(std::string folder) {
  std::exception_ptr missed;
  {
    const MutexLock guard(state_->lock);
    if (state_->flight_folder.empty()) missed = state_->failure;
    state_->flight_folder = folder;
  }
  if (missed) state_->write_record(folder, missed);
}

uint32_t Communicator::next_group_index() const noexcept { return state_->next_group_index; }
void Communicator::set_next_group_index(uint32_t index) noexcept {
  state_->next_group_index = index;
}

std::vector<uint64_t> Communicator::record(const GroupMembers& group,
                                           const std::vector<NumberedOperation>& operations) {
  std::vector<uint64_t> records;
  records.reserve(operations.size());
  for (const NumberedOperation& each : operations) {
    records.push_back(state_->recorder->queued(
        signature_of(each.operation, group.id, each.sequence), group.name,
        static_cast<uint32_t>(operations.size()), each.operation.user_tag));
  }
  return records;
}

void Communicator::begin(std::shared_ptr<const GroupMembers> group,
                         std::vector<NumberedOperation> operations, std::vector<uint64_t> records,
                         const TimeLimits& limits, std::shared_ptr<WorkState> work) {
  const MutexLock guard(state_->lock);
  if (state_->failure) std::rethrow_exception(state_->failure);
  LS_CHECK(!state_->stopping, DistError, "[{}] the group has been destroyed.", group->name);
  state_->submitted.push_back(
      {std::move(group), std::move(operations), std::move(records), limits, std::move(work)});
  state_->tell();
}

void Communicator::compare(const Signature& signature, std::span<const int> ranks) noexcept {
  try {
    const std::string text = encode(Question{signature});
    for (const int rank : ranks) state_->control->post(rank, text);
  } catch (const std::exception&) {
    // Out of memory: the next comparison may have more.
  }
}

void Communicator::abort(const std::string& reason) noexcept {
  state_->control->fail(reason);
  try {
    // Do not wait for the failure to come back by `control`: this rank may be about to exit.
    Failure own{rank(), reason};
    const MutexLock guard(state_->lock);
    if (!state_->reported_failure) state_->reported_failure = std::move(own);
    state_->tell();
  } catch (const std::exception&) {
    // Out of memory: `control` will report the failure.
  }
}

void Communicator::abort_and_leave(const std::string& reason) noexcept {
  state_->control->fail(reason);
  // Answered after the failure, which comes first on the same connection.
  state_->control->leave();
}

void Communicator::stop() noexcept {
  try {
    abort_and_leave(failure_text(StoppedError("another rank was asked to stop.")));
  } catch (const std::exception&) {
    // Out of memory: the other ranks notice the end of this one.
  }
}

std::exception_ptr Communicator::failure() const {
  const MutexLock guard(state_->lock);
  return state_->failure;
}

}  // namespace lockstep::dist
