#include "dist/rendezvous/store_connection.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <thread>
#include <unordered_map>
#include <utility>

#include "core/base/check.h"
#include "core/base/cond_var.h"
#include "core/base/mutex.h"
#include "core/base/service_thread.h"
#include "dist/rendezvous/connection.h"
#include "dist/rendezvous/socket.h"
#include "dist/rendezvous/store_limits.h"

namespace lockstep::dist {

namespace {

using Clock = std::chrono::steady_clock;
using Kind = StoreMessage::Kind;
using std::chrono::milliseconds;

constexpr milliseconds kFailureConfirmed{1'000};
constexpr milliseconds kServerAnswers{1'000};
constexpr milliseconds kLeaveHeard{2'000};
constexpr milliseconds kFarewell{1'000};
constexpr size_t kLongestFailure = size_t{1} << 20;

double seconds_of(milliseconds time) { return std::chrono::duration<double>(time).count(); }

/// The server that answered.
struct Server {
  int rank = 0;    ///< rank it runs in, -1 for none
  int client = 0;  ///< rank of this one
  std::string name;
};

/// Sends a hello on a new connection and returns the answer; nullopt with `error` if there is none.
std::optional<StoreMessage> say_hello(Connection& connection, const StoreOptions& options,
                                      Clock::time_point deadline, std::string& error) {
  connection.send({Kind::kHello,
                   0,
                   {kStoreProtocol, options.rank, options.world_size, ::getpid()},
                   {kStoreMagic, options.job, options.secret, host_name()}});
  while (true) {
    if (auto answer = connection.next()) return answer;
    if (!wait_for(connection.socket(), false, deadline)) {
      error = "something accepts connections there but does not answer";
      return std::nullopt;
    }
    if (!connection.receive(error)) {
      // The answer may have arrived together with the end.
      return connection.next();
    }
  }
}

std::string name_of(int rank) {
  return rank == kAnyRank ? "a rank without a number" : fmt::format("rank {}", rank);
}

Server server_of(const StoreMessage& answer, const StoreOptions& options) {
  if (answer.kind == Kind::kRefusal && has_form(answer, 1, 1)) {
    throw_error(static_cast<StoreStatus>(answer.numbers[0]),
                fmt::format("[store] the store at {} does not let {} in: {}", options.address,
                            name_of(options.rank), answer.texts[0]));
  }
  LS_CHECK(
      answer.kind == Kind::kWelcome && has_form(answer, 3, 2) && answer.texts[0] == kStoreMagic,
      DistError,
      "[store] what listens at {} is no store of a job. Check host and port, which another "
      "program may have taken.",
      options.address);
  Server server{static_cast<int>(answer.numbers[0]), static_cast<int>(answer.numbers[2]), {}};
  server.name = fmt::format("{} (host {}, pid {})",
                            server.rank < 0 ? "the launcher" : fmt::format("rank {}", server.rank),
                            answer.texts[1], answer.numbers[1]);
  return server;
}

/// Connects, retrying until the server has answered.
Connection join_store(const StoreOptions& options, Server& server) {
  const Endpoint endpoint = parse_endpoint(options.address);
  const auto deadline = Clock::now() + options.join_timeout;
  milliseconds pause{5};
  while (true) {
    Connected connected;
    try {
      connected = connect_to(endpoint, deadline);
    } catch (const UnknownHost& error) {
      if (!options.host_may_come) throw;
      connected.error = error.what();
    }
    if (connected.socket) {
      Connection connection(std::move(connected.socket), kLargestStoreMessage);
      const auto answer = [&] {
        try {
          return say_hello(connection, options, deadline, connected.error);
        } catch (const BackendError&) {
          throw;
        } catch (const DistError&) {
          return std::optional(StoreMessage{});  // bytes of another protocol
        }
      }();
      if (answer) {
        server = server_of(*answer, options);
        keep_alive(connection.socket(), options.silence);
        return connection;
      }
    }
    LS_CHECK(Clock::now() + pause < deadline, TimeoutError,
             "[store] {} did not reach the store at {} within {:.3g} s: {}. Is the rank that "
             "runs it up, and may this machine ({}) connect to it?",
             name_of(options.rank), options.address, seconds_of(options.join_timeout),
             connected.error, host_name());
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, milliseconds(250));
  }
}

/// An unanswered request, on the stack of the waiting thread. Used under the connection's mutex.
struct Pending {
  CondVar changed;
  std::optional<StoreMessage> answer;
};

}  // namespace

struct StoreConnection::State {
  explicit State(const StoreOptions& given)
      : options(given), connection(join_store(options, server)) {
    options.rank = server.client;
    thread.start("ls-store-rank", [this] { run(); });
  }

  void run();
  void serve();
  void handle(StoreMessage message);
  void end(const std::string& why);
  void send_locked(const StoreMessage& message) LS_REQUIRES(mutex);
  std::string ended_text() const LS_REQUIRES(mutex);

  StoreOptions options;  ///< constant from when the rank is connected
  Server server;
  WakeUp wake;
  ControlInbox inbox;
  Connection connection;  ///< sending needs the mutex; only the thread receives

  Mutex mutex;
  std::unordered_map<uint64_t, Pending*> pending LS_GUARDED_BY(mutex);
  uint64_t next_id LS_GUARDED_BY(mutex) = 1;
  std::optional<std::string> ended LS_GUARDED_BY(mutex);  ///< why the connection ended
  bool left LS_GUARDED_BY(mutex) = false;
  bool server_closing LS_GUARDED_BY(mutex) = false;
  std::optional<Clock::time_point> stop_by LS_GUARDED_BY(mutex);
  /// A failure of this rank that the server has not confirmed yet.
  std::optional<std::string> unconfirmed LS_GUARDED_BY(mutex);
  Clock::time_point confirmed_by LS_GUARDED_BY(mutex);

  ServiceThread thread;  // last: uses all of the above
};

void StoreConnection::State::run() {
  try {
    serve();
  } catch (const std::exception& error) {
    end(fmt::format("is lost: what it sent cannot be read ({})", error.what()));
  }
}

void StoreConnection::State::serve() {
  // Messages that arrived together with the welcome.
  while (auto message = connection.next()) handle(std::move(*message));
  while (true) {
    auto until = Clock::now() + kLivenessInterval;
    short events = POLLIN;
    {
      const MutexLock lock(mutex);
      if (unconfirmed && Clock::now() >= confirmed_by) {
        inbox.fail({options.rank, *std::exchange(unconfirmed, {})});
      }
      if (stop_by && Clock::now() >= *stop_by) return;
      if (connection.unsent_bytes() > 0) events |= POLLOUT;
      if (stop_by) until = std::min(until, *stop_by);
      if (unconfirmed) until = std::min(until, confirmed_by);
    }
    pollfd entries[] = {{wake.fd(), POLLIN, 0}, {connection.socket().get(), events, 0}};
    const int ready = ::poll(entries, 2, poll_milliseconds(until, kLivenessInterval));
    LS_CHECK(ready >= 0 || errno == EINTR || errno == ENOMEM, BackendError,
             "[store] cannot wait for the server: {}.", std::strerror(errno));
    if (ready > 0 && entries[0].revents != 0) wake.clear();
    if (ready > 0 && (entries[1].revents & ~POLLOUT) != 0) {
      std::string why;
      const bool open = connection.receive(why);
      while (auto message = connection.next()) handle(std::move(*message));
      if (!open) return end(why);
    }
    if (ready > 0 && (entries[1].revents & POLLOUT) != 0) {
      const MutexLock lock(mutex);
      connection.flush();
    }
    if (connection.silent_for(Clock::now()) >= options.silence) {
      return end(
          fmt::format("is lost: its host, or the network to it, has not answered for {:.3g} s",
                      seconds_of(options.silence)));
    }
  }
}

void StoreConnection::State::handle(StoreMessage message) {
  switch (message.kind) {
    case Kind::kAnswer: {
      const MutexLock lock(mutex);
      const auto found = pending.find(message.id);
      if (found == pending.end() || !has_form(message, 1, 1)) return;
      found->second->answer = std::move(message);
      found->second->changed.notify_one();
      pending.erase(found);
      return;
    }
    case Kind::kFailure:
      if (!has_form(message, 1, 1)) return;
      inbox.fail({static_cast<int>(message.numbers[0]), std::move(message.texts[0])});
      {
        const MutexLock lock(mutex);
        unconfirmed.reset();
      }
      return;
    case Kind::kPost:
      if (!has_form(message, 1, 1)) return;
      return inbox.deliver(static_cast<int>(message.numbers[0]), std::move(message.texts[0]));
    case Kind::kClosing: {
      const MutexLock lock(mutex);
      server_closing = true;
      return;
    }
    default:
      return;
  }
}

void StoreConnection::State::end(const std::string& why) {
  const MutexLock lock(mutex);
  if (ended) return;
  ended = why;
  if (unconfirmed) {
    inbox.fail({options.rank, *std::exchange(unconfirmed, {})});
  } else if (!left && !server_closing && !stop_by) {
    inbox.fail({std::max(server.rank, 0),
                fmt::format("{}, where the job's store is, {}.", server.name, why)});
  }
  for (const auto& [id, waiting] : pending) waiting->changed.notify_one();
  pending.clear();
  connection.end_sending();
}

void StoreConnection::State::send_locked(const StoreMessage& message) {
  connection.send(message);
  if (connection.unsent_bytes() > 0) wake.wake();
}

std::string StoreConnection::State::ended_text() const {
  if (left) return fmt::format("[store] rank {} has left the job.", options.rank);
  if (server_closing) {
    return fmt::format(
        "[store] the store has ended: {} stopped it. Stop it when all ranks have "
        "left.",
        server.name);
  }
  const auto failure = inbox.failure();
  return fmt::format("[store] the connection with the store has ended: {}",
                     failure ? failure->text : *ended);
}

StoreConnection::StoreConnection(const StoreOptions& options) {
  LS_CHECK(options.rank >= kAnyRank && options.rank < options.world_size, DistError,
           "[store] there is no rank {} in a world of {}.", options.rank, options.world_size);
  LS_CHECK(options.silence >= kLeastSilence, DistError,
           "[store] the server cannot be lost after {} ms of silence: expected at least {} ms.",
           options.silence.count(), kLeastSilence.count());
  state_ = std::make_unique<State>(options);
}

StoreConnection::~StoreConnection() {
  if (state_->thread.left_behind()) {
    (void)state_.release();
    return;
  }
  {
    // The thread reads until the server has closed its side: closing a socket earlier could discard
    // data that the server has not read.
    const MutexLock lock(state_->mutex);
    state_->stop_by = Clock::now() + kFarewell;
    state_->connection.end_sending();
  }
  state_->wake.wake();
  state_->thread.join();
}

const StoreOptions& StoreConnection::options() const { return state_->options; }

ControlInbox& StoreConnection::inbox() { return state_->inbox; }

std::string StoreConnection::own_host() const {
  return own_end_of(state_->connection.socket()).host;
}

std::string StoreConnection::request(StoreMessage message, milliseconds timeout) {
  State& state = *state_;
  // Give the server time to answer with its own timeout error, which names the missing ranks.
  const auto deadline = Clock::now() + timeout + kServerAnswers;
  Pending waiting;
  UniqueLock lock(state.mutex);
  LS_CHECK(!state.left || message.kind == Kind::kLeave, DistError, "{}", state.ended_text());
  LS_CHECK(!state.ended, PeerLostError, "{}", state.ended_text());
  message.id = state.next_id++;
  state.send_locked(message);
  state.pending.emplace(message.id, &waiting);
  (void)waiting.changed.wait_until(lock, deadline, [&]() LS_REQUIRES(state.mutex) {
    return waiting.answer || state.ended.has_value();
  });
  state.pending.erase(message.id);
  if (!waiting.answer) {
    LS_CHECK(!state.ended, PeerLostError, "{}", state.ended_text());
    throw TimeoutError(fmt::format(
        "[store] the store at {} did not answer rank {} within {:.3g} s: {} may be stopped, or the "
        "network slow.",
        state.options.address, state.options.rank, seconds_of(timeout + kServerAnswers),
        state.server.name));
  }
  const auto status = static_cast<StoreStatus>(waiting.answer->numbers[0]);
  if (status != StoreStatus::kOk) throw_error(status, waiting.answer->texts[0]);
  return std::move(waiting.answer->texts[0]);
}

void StoreConnection::send(const StoreMessage& message) noexcept {
  try {
    const MutexLock lock(state_->mutex);
    if (state_->ended || state_->left || state_->connection.unsent_bytes() > kHeldBytes) return;
    state_->send_locked(message);
  } catch (const std::exception&) {
    // Too large, or out of memory: dropped.
  }
}

void StoreConnection::fail(const std::string& text) noexcept {
  try {
    const MutexLock lock(state_->mutex);
    if (state_->left || state_->unconfirmed || state_->inbox.failure()) return;
    if (state_->ended) return state_->inbox.fail({state_->options.rank, text});
    state_->unconfirmed = text.substr(0, kLongestFailure);
    state_->confirmed_by = Clock::now() + kFailureConfirmed;
    state_->send_locked({Kind::kFail, 0, {}, {*state_->unconfirmed}});
    state_->wake.wake();
  } catch (const std::exception&) {
    // Out of memory: the others notice the end of the connection.
  }
}

void StoreConnection::leave() noexcept {
  try {
    {
      const MutexLock lock(state_->mutex);
      if (state_->left || state_->ended) return;
      state_->left = true;
    }
    (void)request({Kind::kLeave, 0, {}, {}}, kLeaveHeard - kServerAnswers);
  } catch (const std::exception&) {
    // The server has ended or is stopped: there is no one to notify.
  }
}

}  // namespace lockstep::dist
