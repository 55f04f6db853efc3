#include "dist/rendezvous/store_server.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/base/check.h"
#include "core/base/cond_var.h"
#include "core/base/mutex.h"
#include "core/base/service_thread.h"
#include "dist/rendezvous/socket.h"
#include "dist/rendezvous/store_admission.h"
#include "dist/rendezvous/store_clients.h"
#include "dist/rendezvous/store_limits.h"
#include "dist/rendezvous/store_message.h"
#include "dist/rendezvous/store_table.h"

namespace lockstep::dist {

namespace {

using Clock = std::chrono::steady_clock;
using Kind = StoreMessage::Kind;
using Standing = StoreTable::Standing;

constexpr auto kTimeForHello = std::chrono::seconds(10);
constexpr auto kTimeForFarewell = std::chrono::seconds(1);
/// Connections that have not said who they are; an old one makes way for a new one.
constexpr size_t kStrangers = 256;
constexpr auto kPauseOfAccepting = std::chrono::milliseconds(20);
constexpr size_t kReasonsKept = 16;

}  // namespace

struct StoreServer::State {
  explicit State(StoreServerOptions given);

  void run();
  void serve();
  void wait_for_events(Clock::time_point until);
  void accept_all();
  void accept_without_descriptor();
  bool make_room();
  void refuse_newcomer();
  void read(StoreClient& client);
  void handle(StoreClient& client, StoreMessage message);
  void greet(StoreClient& client, const StoreMessage& hello);
  void refuse(StoreClient& client, Refusal refusal);
  void remember_refusal(const std::string& text);
  void post(int from, StoreMessage message);
  void leave(StoreClient& client, uint64_t id);
  void ended(StoreClient& client, const std::string& why);
  void close_unidentified(Clock::time_point now);
  void check_liveness(Clock::time_point now);
  void tell_failure();
  void say_goodbye();

  StoreServerOptions options;
  std::string address;
  WakeUp wake;

  // Used by the thread only, once it runs.
  Descriptor listener;
  Descriptor spare;  ///< closed to accept one more connection when no descriptor is left
  StoreTable table;
  StoreClients clients;
  bool failure_told = false;
  Clock::time_point accept_again;  ///< accepts no connections before this
  Clock::time_point next_liveness_check = Clock::now() + kLivenessInterval;

  Mutex mutex;
  CondVar changed;
  bool stopping LS_GUARDED_BY(mutex) = false;
  bool all_left LS_GUARDED_BY(mutex) = false;
  bool failed LS_GUARDED_BY(mutex) = false;
  std::vector<std::string> refusals LS_GUARDED_BY(mutex);

  ServiceThread thread;  // last: uses all of the above
};

StoreServer::State::State(StoreServerOptions given)
    : options(std::move(given)),
      spare(::open("/dev/null", O_RDONLY | O_CLOEXEC)),
      table(options.world_size,
            [this](int rank, const StoreMessage& answer) { clients.send(rank, answer); }),
      clients(options.world_size) {
  Endpoint endpoint = parse_endpoint(options.address);
  listener = listen_at(endpoint);
  address = to_string(endpoint);
  thread.start("ls-store", [this] { run(); });
}

void StoreServer::State::run() {
  try {
    serve();
    say_goodbye();
  } catch (const std::exception&) {
    // Out of memory, most likely. All ranks notice the end of their connections.
  }
  clients.all().clear();
  listener.reset();
  const MutexLock lock(mutex);
  failed = failed || !all_left;
  changed.notify_all();
}

void StoreServer::State::serve() {
  for (bool last_round = false; !last_round;) {
    {
      const MutexLock lock(mutex);
      // The last round handles messages that the ranks sent before.
      last_round = stopping;
      all_left = table.all_left();
      failed = table.failure().has_value();
      if (all_left || failed) changed.notify_all();
    }
    wait_for_events(last_round ? Clock::time_point() : Clock::time_point::max());
    const auto now = Clock::now();
    table.expire(now);
    close_unidentified(now);
    if (now >= next_liveness_check) check_liveness(now);
    tell_failure();
    clients.remove_gone();
  }
}

void StoreServer::State::close_unidentified(Clock::time_point now) {
  for (StoreClient& client : clients.all()) {
    if (client.rank >= 0 || client.to_remove || client.give_up > now) continue;
    if (client.is_stranger()) {
      refuse(client, {StoreStatus::kDistError, "it did not say which rank it is within 10 s"});
    }
    client.to_remove = true;
  }
}

void StoreServer::State::wait_for_events(Clock::time_point until) {
  const bool accepts = Clock::now() >= accept_again;
  if (!accepts) until = std::min(until, accept_again);
  std::vector<pollfd> entries = {{wake.fd(), POLLIN, 0},
                                 {accepts ? listener.get() : -1, POLLIN, 0}};
  std::vector<StoreClient*> polled;
  for (StoreClient& client : clients.all()) {
    const bool unsent = client.connection.unsent_bytes() > 0;
    entries.push_back({client.connection.socket().get(),
                       static_cast<short>(unsent ? POLLIN | POLLOUT : POLLIN), 0});
    polled.push_back(&client);
    until = std::min(until, client.rank < 0 ? client.give_up : next_liveness_check);
  }
  if (const auto deadline = table.next_deadline()) until = std::min(until, *deadline);
  const int ready =
      ::poll(entries.data(), entries.size(), poll_milliseconds(until, std::chrono::hours(1)));
  LS_CHECK(ready >= 0 || errno == EINTR || errno == ENOMEM, BackendError,
           "[store] the server cannot wait for its clients: {}.", std::strerror(errno));
  if (ready <= 0) return;
  if (entries[0].revents != 0) wake.clear();
  // Read before accepting: a rank that has ended makes room for its successor.
  for (size_t i = 0; i < polled.size(); ++i) {
    const short events = entries[i + 2].revents;
    if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) read(*polled[i]);
    if ((events & POLLOUT) != 0) polled[i]->connection.flush();
  }
  if (entries[1].revents != 0 && listener) accept_all();
}

void StoreServer::State::accept_all() {
  while (true) {
    if (clients.strangers() >= kStrangers && !make_room()) return;
    Accepted accepted = accept_at(listener);
    const int error = accepted.error;
    if (error == EAGAIN || error == EWOULDBLOCK) return;
    if (error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS) {
      return accept_without_descriptor();
    }
    if (error != 0) continue;  // the connection has been closed again
    keep_alive(accepted.socket, options.silence);
    clients.add(std::move(accepted.socket), std::move(accepted.from), kTimeForHello);
  }
}

/// Called if no descriptor is left: new connections would stay pending, and poll() would return at
/// once forever.
void StoreServer::State::accept_without_descriptor() {
  const bool all_are_ranks =
      std::ranges::all_of(clients.all(), [](const StoreClient& one) { return one.rank >= 0; });
  if (all_are_ranks) {
    refuse_newcomer();
  } else {
    (void)make_room();
  }
}

/// Closes a connection that has not identified itself for long, or else pauses accepting: ranks
/// among the unidentified are about to identify themselves, and those that wait try again.
bool StoreServer::State::make_room() {
  const auto now = Clock::now();
  if (clients.remove_old_stranger(now)) return true;
  accept_again = now + kPauseOfAccepting;
  return false;
}

void StoreServer::State::refuse_newcomer() {
  spare.reset();
  Accepted accepted = accept_at(listener);
  if (accepted.socket) {
    StoreClient client{Connection(std::move(accepted.socket), kLargestHello),
                       std::move(accepted.from)};
    refuse(client, {StoreStatus::kDistError,
                    "the store's server has no file descriptor left for one more rank. Raise the "
                    "limit (ulimit -n) of the process that it runs in"});
    // Read first: closing a socket with unread data would discard the refusal.
    std::string why;
    (void)wait_for(client.connection.socket(), false, Clock::now() + kPauseOfAccepting);
    (void)client.connection.receive(why);
  }
  spare = Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!spare) accept_again = Clock::now() + kPauseOfAccepting;
}

void StoreServer::State::read(StoreClient& client) {
  if (client.to_remove) return;
  std::string why;
  const bool open = client.connection.receive(why);
  try {
    while (!client.to_remove) {
      std::optional<StoreMessage> message = client.connection.next();
      if (!message) break;
      handle(client, std::move(*message));
    }
  } catch (const DistError&) {
    if (client.rank >= 0) {
      ended(client, "is lost: it sent what is no message of a store");
    } else if (!client.refused) {
      refuse(client, {StoreStatus::kDistError, "it sent what is no message of a store"});
      client.to_remove = true;
    }
    client.to_remove = true;
  }
  if (!open && !client.to_remove) ended(client, why);
}

void StoreServer::State::handle(StoreClient& client, StoreMessage message) {
  if (client.refused) return;
  if (client.rank < 0) return greet(client, message);
  switch (message.kind) {
    case Kind::kFail:
      if (has_form(message, 0, 1)) table.fail({client.rank, std::move(message.texts[0])});
      return;
    case Kind::kPost:
      if (has_form(message, 1, 1)) post(client.rank, std::move(message));
      return;
    case Kind::kLeave:
      return leave(client, message.id);
    default:
      return table.request(client.rank, message, Clock::now());
  }
}

void StoreServer::State::greet(StoreClient& client, const StoreMessage& hello) {
  if (is_from_newcomer(hello)) {  // there is no Door yet, and it tries again
    client.to_remove = true;
    return;
  }
  if (auto refusal = check_admission(hello, options, table)) {
    return refuse(client, std::move(*refusal));
  }
  const int rank = hello.numbers[1] == kAnyRank ? *table.free_rank(options.rank)
                                                : static_cast<int>(hello.numbers[1]);
  client.connection.send(
      {Kind::kWelcome, 0, {options.rank, ::getpid(), rank}, {kStoreMagic, host_name()}});
  if (const auto& failure = table.failure()) {
    client.connection.send({Kind::kFailure, 0, {failure->rank}, {failure->text}});
  }
  clients.bind_rank(client, rank);
  // Before any of them knows that all have come.
  if (options.frees_address && !table.free_rank(rank)) listener.reset();
  table.came(rank, hello.texts[3], hello.numbers[3]);
}

void StoreServer::State::refuse(StoreClient& client, Refusal refusal) {
  const std::string text =
      fmt::format("the connection from {} was refused: {}.", client.from, refusal.text);
  remember_refusal(text);
  client.refused = true;
  client.give_up = Clock::now() + kTimeForFarewell;
  client.connection.send({Kind::kRefusal, 0, {static_cast<int64_t>(refusal.status)}, {text}});
  client.connection.end_sending();
}

void StoreServer::State::remember_refusal(const std::string& text) {
  table.refused(text);
  const MutexLock lock(mutex);
  if (refusals.size() == kReasonsKept) refusals.erase(refusals.begin());
  refusals.push_back(text);
}

void StoreServer::State::post(int from, StoreMessage message) {
  const int64_t to = std::exchange(message.numbers[0], from);
  if (to < 0 || to >= options.world_size) return;
  const auto rank = static_cast<int>(to);
  clients.post(rank, std::move(message), table.standing(rank) == Standing::kNeverCame);
}

void StoreServer::State::leave(StoreClient& client, uint64_t id) {
  const int rank = client.rank;
  // Before the answer, after which this process may end if it is that of the rank.
  tell_failure();
  clients.send(rank, {Kind::kAnswer, id, {static_cast<int64_t>(StoreStatus::kOk)}, {""}});
  clients.unbind_rank(client);
  // Ignore further messages.
  client.refused = true;
  client.give_up = Clock::now() + kTimeForHello;
  table.left(rank);
}

void StoreServer::State::ended(StoreClient& client, const std::string& why) {
  client.to_remove = true;
  const int rank = client.rank;
  if (rank < 0) return;
  clients.unbind_rank(client);
  table.lost(rank, why);
}

void StoreServer::State::check_liveness(Clock::time_point now) {
  next_liveness_check = now + kLivenessInterval;
  for (StoreClient& client : clients.all()) {
    if (client.rank < 0) continue;
    if (client.connection.silent_for(now) < options.silence) continue;
    ended(client,
          fmt::format("is lost: its host, or the network to it, has not answered for {:.3g} s",
                      std::chrono::duration<double>(options.silence).count()));
  }
}

void StoreServer::State::tell_failure() {
  const auto& failure = table.failure();
  if (!failure || failure_told) return;
  failure_told = true;
  clients.send_to_all_ranks({Kind::kFailure, 0, {failure->rank}, {failure->text}});
}

void StoreServer::State::say_goodbye() {
  if (options.rank >= 0 && table.standing(options.rank) != Standing::kLeft) {
    table.fail({options.rank, fmt::format("{} ended without leaving the job: it stopped the store.",
                                          table.describe(options.rank))});
  }
  tell_failure();
  clients.send_to_all_ranks({Kind::kClosing, 0, {}, {}});
  for (StoreClient& client : clients.all()) client.connection.end_sending();
  // Wait until all have read it: closing a socket earlier could discard the message.
  const auto until = Clock::now() + kTimeForFarewell;
  for (StoreClient& client : clients.all()) {
    std::string why;
    while (client.rank >= 0) {
      const bool unsent = client.connection.unsent_bytes() > 0;
      if (!wait_for(client.connection.socket(), unsent, until)) break;
      if (unsent) {
        client.connection.flush();
      } else if (!client.connection.receive(why)) {
        break;
      }
      while (client.connection.next()) {
      }
    }
  }
}

StoreServer::StoreServer(StoreServerOptions options) {
  LS_CHECK(options.world_size >= 1 && options.rank < options.world_size, DistError,
           "[store] rank {} in a world of {} ranks cannot run the store.", options.rank,
           options.world_size);
  LS_CHECK(options.silence >= kLeastSilence, DistError,
           "[store] a rank cannot be lost after {} ms of silence: expected at least {} ms.",
           options.silence.count(), kLeastSilence.count());
  state_ = std::make_unique<State>(std::move(options));
}

StoreServer::~StoreServer() {
  if (state_->thread.left_behind()) {
    (void)state_.release();
    return;
  }
  {
    const MutexLock lock(state_->mutex);
    state_->stopping = true;
  }
  state_->wake.wake();
  state_->thread.join();
}

const std::string& StoreServer::address() const { return state_->address; }

std::vector<std::string> StoreServer::refusals() const {
  const MutexLock lock(state_->mutex);
  return state_->refusals;
}

bool StoreServer::wait_until_left(std::chrono::milliseconds timeout) const {
  UniqueLock lock(state_->mutex);
  (void)state_->changed.wait_for(lock, timeout, [&]() LS_REQUIRES(state_->mutex) {
    return state_->all_left || state_->failed;
  });
  return state_->all_left;
}

}  // namespace lockstep::dist
