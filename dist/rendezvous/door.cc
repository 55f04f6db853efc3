#include "dist/rendezvous/door.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <list>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include "core/base/check.h"
#include "core/base/error.h"
#include "core/base/mutex.h"
#include "core/base/service_thread.h"
#include "dist/rendezvous/door_guest.h"
#include "dist/rendezvous/listening.h"
#include "dist/rendezvous/secret.h"
#include "dist/rendezvous/socket.h"
#include "dist/rendezvous/text_difference.h"

namespace lockstep::dist {

namespace {

using Clock = std::chrono::steady_clock;
using Kind = StoreMessage::Kind;
using std::chrono::seconds;

/// To read why it is refused.
constexpr seconds kTimeToRead(1);
/// One that takes nothing of what it is given for so long is given no more.
constexpr seconds kTimeToTake(30);
/// For those that still take something when the job ends, to come to the message that says so.
constexpr seconds kTimeToTakeTheRest(5);
/// An old connection makes way for a new one.
constexpr size_t kMostGuests = 256;

/// Why texts "what, text, what, text ..." from `begin` on are not those of `facts`, or "".
std::string difference_of(const std::vector<JoinFact>& facts, const std::vector<std::string>& texts,
                          size_t begin) {
  for (size_t i = 0; i < facts.size(); ++i) {
    const size_t at = begin + 2 * i;
    if (at + 1 >= texts.size() || texts[at] != facts[i].what) {
      return "it does not say the same of itself as the ranks of this job. All ranks must run the "
             "same build";
    }
    if (texts[at + 1] == facts[i].text) continue;
    const LineDifference lines = first_difference(facts[i].text, texts[at + 1]);
    return fmt::format(
        "it has another {} than the ranks of this job: expected \"{}\", got \"{}\". Start it as "
        "they were started",
        facts[i].what, lines.first, lines.second);
  }
  return "";
}

}  // namespace

struct Door::State {
  explicit State(DoorOptions given) : options(std::move(given)) {}

  void run();
  void listen() LS_REQUIRES(mutex);
  void serve(Clock::time_point now) LS_REQUIRES(mutex);
  void accept_all() LS_REQUIRES(mutex);
  void read(DoorGuest& guest) LS_REQUIRES(mutex);
  void handle(DoorGuest& guest, StoreMessage message) LS_REQUIRES(mutex);
  void greet(DoorGuest& guest, const StoreMessage& hello) LS_REQUIRES(mutex);
  void refuse(DoorGuest& guest, StoreStatus status, const std::string& why) LS_REQUIRES(mutex);
  void look_at_all(Clock::time_point now) LS_REQUIRES(mutex);
  void say_goodbye();
  /// A message with an id of its own.
  std::shared_ptr<const StoreMessage> message_of(std::string part) LS_REQUIRES(mutex);

  const DoorOptions options;
  WakeUp wake;

  mutable Mutex mutex;
  Descriptor listener LS_GUARDED_BY(mutex);
  std::list<DoorGuest> guests LS_GUARDED_BY(mutex);
  Clock::time_point next_look LS_GUARDED_BY(mutex) = Clock::now();
  int ranks LS_GUARDED_BY(mutex) = 0;
  int most LS_GUARDED_BY(mutex) = 0;
  std::vector<std::string> doors LS_GUARDED_BY(mutex);
  uint64_t last_given LS_GUARDED_BY(mutex) = 0;  ///< id of a message
  std::optional<JoinEnd> end LS_GUARDED_BY(mutex);
  bool has_ended LS_GUARDED_BY(mutex) = false;

  ServiceThread thread;  // last: uses all of the above
};

void Door::State::run() {
  try {
    for (;;) {
      std::vector<pollfd> files = {{wake.fd(), POLLIN, 0}};
      Clock::time_point until;
      {
        const MutexLock lock(mutex);
        if (end) break;
        until = next_look;
        files.push_back({listener.get(), POLLIN, 0});  // -1 is ignored
        for (const DoorGuest& guest : guests) {
          const bool unsent = guest.connection.unsent_bytes() > 0 || guest.has_more();
          files.push_back({guest.connection.socket().get(),
                           static_cast<short>(unsent ? POLLIN | POLLOUT : POLLIN), 0});
        }
      }
      (void)::poll(files.data(), files.size(), poll_milliseconds(until, kJoinLook));
      wake.clear();
      const MutexLock lock(mutex);
      serve(Clock::now());
    }
    say_goodbye();
  } catch (const std::exception&) {
    // Out of memory, most likely. Those that wait notice the end of their connections.
  }
  const MutexLock lock(mutex);
  guests.clear();
  listener.reset();
  has_ended = true;
}

void Door::State::serve(Clock::time_point now) {
  for (DoorGuest& guest : guests) {
    guest.connection.flush();
    guest.send_more();
    read(guest);
  }
  if (now >= next_look) {
    next_look = now + kJoinLook;
    listen();
    look_at_all(now);
  }
  accept_all();
  std::erase_if(guests, [&](const DoorGuest& guest) {
    return guest.standing == DoorGuest::Standing::kGone || (guest.give_up && *guest.give_up < now);
  });
}

/// The port may still be that of the job's store, or of a leader that was lost just now.
void Door::State::listen() {
  if (listener) return;
  try {
    Endpoint endpoint = listening(parse_endpoint(options.address));
    listener = listen_at(endpoint);
  } catch (const BackendError&) {
    // It is in use, or no descriptor is left.
  }
}

void Door::State::accept_all() {
  if (!listener) return;
  for (Accepted accepted = accept_at(listener); accepted.socket; accepted = accept_at(listener)) {
    if (guests.size() >= kMostGuests) {
      const auto oldest = std::ranges::find_if(guests, [](const DoorGuest& guest) {
        return guest.standing == DoorGuest::Standing::kStranger;
      });
      guests.erase(oldest == guests.end() ? guests.begin() : oldest);
    }
    keep_alive(accepted.socket, kJoinSilence);
    guests.emplace_back(std::move(accepted.socket), std::move(accepted.from));
  }
}

void Door::State::read(DoorGuest& guest) {
  using Standing = DoorGuest::Standing;
  std::string why;
  const bool open = guest.connection.receive(why);
  try {
    while (guest.standing != Standing::kGone) {
      std::optional<StoreMessage> message = guest.connection.next();
      if (!message) break;
      handle(guest, std::move(*message));
    }
  } catch (const DistError&) {
    guest.standing = Standing::kGone;  // no message at all: another program
  }
  if (!open) guest.standing = Standing::kGone;
}

void Door::State::handle(DoorGuest& guest, StoreMessage message) {
  using Standing = DoorGuest::Standing;
  const auto is = [&](Standing standing, Kind kind) {
    return guest.standing == standing && message.kind == kind;
  };
  const bool is_ready = guest.standing == Standing::kReady;
  if (guest.standing == Standing::kStranger) {
    greet(guest, message);
  } else if (is(Standing::kKnown, Kind::kSet)) {
    const std::string why = difference_of(options.early, message.texts, 0);
    if (!why.empty()) return refuse(guest, StoreStatus::kMismatchError, why);
    guest.standing = Standing::kBuilding;
    guest.give_up.reset();
    guest.connection.send({Kind::kAnswer, 0, options.terms, {}});
  } else if (is(Standing::kBuilding, Kind::kJoin) && !message.texts.empty()) {
    const std::string why = difference_of(options.late, message.texts, 1);
    if (!why.empty()) return refuse(guest, StoreStatus::kMismatchError, why);
    guest.standing = Standing::kReady;
    guest.place = std::move(message.texts[0]);
    guest.answered = Clock::now();
    guest.connection.send({Kind::kCheck, 0, {ranks, most}, doors});
  } else if (is(Standing::kReady, Kind::kCheck)) {
    guest.answered = Clock::now();
  } else if (message.kind == Kind::kAnswer && (is_ready || guest.is_called)) {
    guest.has_taken(message.id, Clock::now());
  }
}

void Door::State::greet(DoorGuest& guest, const StoreMessage& hello) {
  using Standing = DoorGuest::Standing;
  if (hello.kind != Kind::kHello || hello.numbers.empty() || hello.texts.empty() ||
      (hello.texts[0] != kJoinMagic && hello.texts[0] != kStoreMagic)) {
    guest.standing = Standing::kGone;
    return;
  }
  if (hello.texts[0] == kStoreMagic) {
    return refuse(guest, StoreStatus::kDistError,
                  "the job at this address trains already. A process joins it with --join");
  }
  if (hello.numbers[0] != kJoinProtocol || !has_form(hello, 2, 4)) {
    return refuse(guest, StoreStatus::kMismatchError,
                  "it does not join as the ranks of this job would. All ranks must run the same "
                  "build");
  }
  if (hello.texts[1] != options.job) {
    return refuse(guest, StoreStatus::kDistError,
                  fmt::format("it is of another job, this is job \"{}\"", options.job));
  }
  if (!same_secret(hello.texts[2], options.secret)) {
    return refuse(guest, StoreStatus::kDistError,
                  fmt::format("it does not know the secret of job \"{}\"", options.job));
  }
  guest.standing = Standing::kKnown;
  guest.give_up = Clock::now() + DoorGuest::kTimeToSay;
  guest.connection.set_largest_message(kLargestStoreMessage);
  guest.connection.send({Kind::kWelcome, 0, {}, {}});
}

void Door::State::refuse(DoorGuest& guest, StoreStatus status, const std::string& why) {
  guest.connection.send(
      {Kind::kRefusal,
       0,
       {static_cast<int64_t>(status)},
       {fmt::format("the connection from {} was refused: {}.", guest.from, why)}});
  guest.connection.end_sending();
  // Closed after it has read that.
  guest.standing = DoorGuest::Standing::kLeaving;
  guest.give_up = Clock::now() + kTimeToRead;
}

void Door::State::look_at_all(Clock::time_point now) {
  for (DoorGuest& guest : guests) {
    if (guest.standing != DoorGuest::Standing::kReady) continue;
    if (guest.takes && now - guest.answered > kTimeToTake) guest.end_taking();
    if (guest.connection.silent_for(now) >= kJoinSilence) {
      guest.standing = DoorGuest::Standing::kGone;
    } else if (guest.connection.unsent_bytes() == 0) {
      guest.connection.send({Kind::kCheck, 0, {ranks, most}, doors});
    }
  }
}

/// Tells how the job has ended, and waits until all have read it: closing a socket earlier could
/// discard the message.
void Door::State::say_goodbye() {
  const MutexLock lock(mutex);
  listener.reset();
  bool some_take = false;
  for (DoorGuest& guest : guests) {
    some_take = some_take || guest.takes;
    guest.send_rest();
    if (!guest.is_called) {
      guest.connection.send({Kind::kClosing, 0, {static_cast<int64_t>(*end)}, {}});
    }
    guest.connection.end_sending();
  }
  const auto until = Clock::now() + (some_take ? kTimeToTakeTheRest : kTimeToRead);
  for (DoorGuest& guest : guests) {
    std::string why;
    while (wait_for(guest.connection.socket(), guest.connection.unsent_bytes() > 0, until)) {
      guest.connection.flush();
      if (!guest.connection.receive(why)) break;
      try {
        while (guest.connection.next()) {
        }
      } catch (const DistError&) {
        break;
      }
    }
  }
}

Door::Door(DoorOptions options) : state_(std::make_unique<State>(std::move(options))) {
  state_->thread.start("ls-door", [state = state_.get()] { state->run(); });
}

Door::Door(DoorOptions options, OpenPort port)
    : state_(std::make_unique<State>(std::move(options))) {
  {
    const MutexLock lock(state_->mutex);
    state_->listener = port.take_listener();
  }
  state_->thread.start("ls-door", [state = state_.get()] { state->run(); });
}

Door::~Door() {
  if (state_->thread.left_behind()) {
    (void)state_.release();
    return;
  }
  close(JoinEnd::kFailed);
  state_->thread.join();
}

void Door::tell(int ranks, int most, std::vector<std::string> doors) {
  const MutexLock lock(state_->mutex);
  state_->ranks = ranks;
  state_->most = most;
  state_->doors = std::move(doors);
}

int Door::ready() const {
  const MutexLock lock(state_->mutex);
  const auto now = Clock::now();
  return static_cast<int>(std::ranges::count_if(state_->guests, [&](const DoorGuest& guest) {
    return guest.can_be_called(now) && !guest.takes;
  }));
}

int Door::begin_giving(int count) {
  const MutexLock lock(state_->mutex);
  const auto now = Clock::now();
  int begun = 0;
  for (DoorGuest& guest : state_->guests) {
    LS_ASSERT(!guest.is_taking());
    if (begun == count || !guest.can_be_called(now)) continue;
    guest.takes = true;
    ++begun;
  }
  return begun;
}

std::shared_ptr<const StoreMessage> Door::State::message_of(std::string part) {
  return std::make_shared<const StoreMessage>(
      StoreMessage{Kind::kSet, ++last_given, {}, {std::move(part)}});
}

void Door::give(std::vector<std::string> parts) {
  const MutexLock lock(state_->mutex);
  for (std::string& part : parts) {
    const size_t bytes = part.size();
    const auto message = state_->message_of(std::move(part));
    for (DoorGuest& guest : state_->guests) {
      if (guest.is_taking()) guest.give(message, bytes);
    }
  }
  state_->wake.wake();
}

void Door::give_each(std::vector<std::string> parts) {
  const MutexLock lock(state_->mutex);
  auto next = parts.begin();
  for (DoorGuest& guest : state_->guests) {
    if (!guest.is_taking() || next == parts.end()) continue;
    const size_t bytes = next->size();
    guest.give(state_->message_of(std::move(*next++)), bytes);
  }
  state_->wake.wake();
}

Door::Given Door::given() const {
  const MutexLock lock(state_->mutex);
  const auto now = Clock::now();
  Given given;
  for (const DoorGuest& guest : state_->guests) {
    if (!guest.is_taking()) continue;
    ++given.processes;
    if (guest.can_be_called(now)) ++given.answering;
    given.left = std::max(given.left, guest.untaken_bytes());
  }
  return given;
}

void Door::end_giving() {
  const MutexLock lock(state_->mutex);
  for (DoorGuest& guest : state_->guests) {
    if (guest.is_taking()) guest.end_taking();
  }
}

std::vector<std::string> Door::call(int count, int first, const std::vector<std::string>& texts) {
  const MutexLock lock(state_->mutex);
  const auto now = Clock::now();
  const bool some_take = std::ranges::any_of(state_->guests, &DoorGuest::is_taking);
  std::vector<DoorGuest*> called;
  for (DoorGuest& guest : state_->guests) {
    if (static_cast<int>(called.size()) < count && guest.can_be_called(now) &&
        guest.takes == some_take) {
      called.push_back(&guest);
    }
  }
  std::vector<std::string> places;
  for (const DoorGuest* guest : called) places.push_back(guest->place);
  StoreMessage message{Kind::kPost, 0, {0}, texts};
  message.texts.insert(message.texts.end(), places.begin(), places.end());
  for (size_t i = 0; i < called.size(); ++i) {
    DoorGuest& guest = *called[i];
    message.numbers[0] = first + static_cast<int64_t>(i);
    guest.call(message, now);
  }
  if (!called.empty()) state_->wake.wake();
  return places;
}

void Door::await(int count, std::chrono::milliseconds limit) const {
  constexpr std::chrono::milliseconds kAgain(10);
  const auto until = Clock::now() + limit;
  while (ready() < count && Clock::now() < until) std::this_thread::sleep_for(kAgain);
}

void Door::close(JoinEnd end) {
  {
    const MutexLock lock(state_->mutex);
    if (state_->end) return;
    state_->end = end;
  }
  state_->wake.wake();
}

bool Door::is_open() const {
  const MutexLock lock(state_->mutex);
  return static_cast<bool>(state_->listener);
}

bool Door::has_ended() const {
  const MutexLock lock(state_->mutex);
  return state_->has_ended;
}

}  // namespace lockstep::dist
