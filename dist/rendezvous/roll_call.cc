#include "dist/rendezvous/roll_call.h"

#include <fmt/core.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <list>
#include <numeric>
#include <optional>
#include <utility>

#include "core/base/check.h"
#include "core/base/parse_number.h"
#include "dist/rendezvous/connection.h"
#include "dist/rendezvous/secret.h"
#include "dist/rendezvous/socket.h"
#include "dist/rendezvous/store_message.h"

namespace lockstep::dist {

namespace {

using Clock = std::chrono::steady_clock;
using Kind = StoreMessage::Kind;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kRollMagic = "lockstep-roll-1";
/// How long a host may take to answer; one that does not is gone.
constexpr seconds kReach(2);
/// For a rank that has come and is to decide: more than it waits.
constexpr seconds kToDecide(5);
constexpr seconds kHardLimit(10);  ///< beyond three waits
/// For the others to read what was decided.
constexpr seconds kToHear(1);
/// Connections that have not said who they are; the oldest makes way for a new one.
constexpr size_t kMostCallers = 256;
/// Deadlines are looked at so often.
constexpr milliseconds kLook(20);

}  // namespace

/// One call of the roll.
class RollCall::Round {
 public:
  Round(RollCall& call, const std::string& told, milliseconds wait)
      : call_(call), told_(told), wait_(wait), others_(call.descriptions_.size()) {}

  Outcome run(const Decide& decide) {
    reach_all();
    for (;;) {
      const auto now = Clock::now();
      if (heard_) return *heard_;
      if (now > begin_ + 3 * wait_ + kHardLimit) {
        return {{false, "no rank has called the roll in time"}, {}, {}};
      }
      if (is_lowest(now) && all_are_known(now)) return decide_for_all(decide);
      wait_for_events();
    }
  }

 private:
  /// Another rank.
  struct Other {
    std::vector<Descriptor> attempts;   ///< connections to its addresses that have begun
    std::optional<Connection> outward;  ///< to it
    std::string host;                   ///< at which it was reached
    bool gone = false;
    std::optional<Connection> inward;  ///< by which it has come
    std::string told;
    Clock::time_point came;
    std::vector<std::string> hosts;  ///< of `attempts`

    bool is_present() const { return inward && !gone; }
  };

  size_t size() const { return others_.size(); }
  size_t self() const { return static_cast<size_t>(call_.rank_); }
  bool is_lower(size_t rank) const { return call_.turns_[rank] < call_.turns_[self()]; }

  void reach_all() {
    for (size_t rank = 0; rank < size(); ++rank) {
      if (rank == self()) continue;
      Other& other = others_[rank];
      for (const Endpoint& endpoint : endpoints_of(call_.descriptions_[rank], call_.near_[rank])) {
        Connected begun = begin_connecting(endpoint);
        if (!begun.socket) continue;
        other.attempts.push_back(std::move(begun.socket));
        other.hosts.push_back(endpoint.host);
      }
      other.gone = other.attempts.empty();
    }
  }

  /// Whether no lower rank is left that would decide.
  bool is_lowest(Clock::time_point now) const {
    for (size_t rank = 0; rank < size(); ++rank) {
      if (!is_lower(rank)) continue;
      const Other& other = others_[rank];
      const auto until = other.is_present() ? other.came + wait_ + kToDecide : begin_ + wait_;
      if (!other.gone && now < until) return false;
    }
    return true;
  }
  /// Whether each higher rank has come, is gone, or had its time.
  bool all_are_known(Clock::time_point now) const {
    if (now >= begin_ + wait_) return true;
    for (size_t rank = 0; rank < size(); ++rank) {
      const Other& other = others_[rank];
      const bool is_known = other.gone || other.is_present();
      if (rank != self() && !is_lower(rank) && !is_known) return false;
    }
    return true;
  }

  Outcome decide_for_all(const Decide& decide) {
    std::vector<Present> present;
    for (size_t rank = 0; rank < size(); ++rank) {
      if (rank == self()) present.push_back({call_.rank_, told_});
      if (others_[rank].is_present())
        present.push_back({static_cast<int>(rank), others_[rank].told});
    }
    Outcome outcome{decide(present), {}, {}};
    StoreMessage message{
        Kind::kAnswer, 0, {outcome.decision.goes_on ? 1 : 0}, {outcome.decision.text}};
    if (outcome.decision.goes_on) outcome.present = std::move(present);
    for (const Present& each : outcome.present) {
      message.texts.push_back(std::to_string(each.rank));
      message.texts.push_back(each.told);
    }
    for (Other& other : others_) {
      if (!other.is_present()) continue;
      other.inward->send(message);
      other.inward->end_sending();
    }
    const auto until = Clock::now() + kToHear;
    for (Other& other : others_) {
      if (other.is_present()) wait_for_end(*other.inward, until);
    }
    return outcome;
  }

  /// Waits until the other side has read everything and closed the connection.
  static void wait_for_end(Connection& connection, Clock::time_point until) {
    std::string why;
    for (;;) {
      const bool unsent = connection.unsent_bytes() > 0;
      if (!wait_for(connection.socket(), unsent, until)) return;
      if (unsent) {
        connection.flush();
      } else if (!connection.receive(why)) {
        return;
      }
    }
  }

  void wait_for_events() {
    std::vector<pollfd> files = {{call_.port_.listener().get(), POLLIN, 0}};
    const auto add = [&](const Descriptor& socket, bool write) {
      files.push_back({socket.get(), static_cast<short>(write ? POLLIN | POLLOUT : POLLIN), 0});
    };
    for (const Other& other : others_) {
      for (const Descriptor& attempt : other.attempts) add(attempt, true);
      for (const auto* each : {&other.outward, &other.inward}) {
        if (*each) add((*each)->socket(), (*each)->unsent_bytes() > 0);
      }
    }
    for (const Connection& each : strangers_) add(each.socket(), false);
    const int ready = ::poll(files.data(), files.size(), static_cast<int>(kLook.count()));
    LS_CHECK(ready >= 0 || errno == EINTR, BackendError, "[roll call] poll failed: {}.",
             std::strerror(errno));
    for (Other& other : others_) {
      take_attempts(other);
      if (other.outward) listen_to(other);
      if (other.inward) {
        other.inward->flush();
        std::string why;
        if (!other.inward->receive(why)) other.inward.reset();
      }
    }
    greet_strangers();
  }

  /// Takes the first connection to a rank that stands.
  void take_attempts(Other& other) {
    for (size_t i = 0; i < other.attempts.size();) {
      if (!wait_for(other.attempts[i], true, Clock::time_point())) {
        ++i;
        continue;
      }
      if (connecting_error(other.attempts[i]).empty()) {
        other.outward.emplace(std::move(other.attempts[i]), kLargestStoreMessage);
        other.host = other.hosts[i];
        other.attempts.clear();
        other.outward->send({Kind::kHello, 0, {call_.rank_}, {kRollMagic, call_.key_, told_}});
        return;
      }
      other.attempts.erase(other.attempts.begin() + static_cast<ptrdiff_t>(i));
      other.hosts.erase(other.hosts.begin() + static_cast<ptrdiff_t>(i));
    }
    if (Clock::now() > begin_ + kReach) other.attempts.clear();
    other.gone = other.gone || (other.attempts.empty() && !other.outward);
  }

  /// Hears what a rank has decided, or that it is gone.
  void listen_to(Other& other) {
    other.outward->flush();
    std::string why;
    const bool open = other.outward->receive(why);
    try {
      while (auto message = other.outward->next()) {
        if (message->kind == Kind::kAnswer && !heard_) hear(*message, other.host);
      }
    } catch (const DistError&) {
      other.gone = true;  // another program listens there
    }
    if (open && !other.gone) return;
    other.gone = true;
    other.outward.reset();
  }

  void hear(const StoreMessage& message, const std::string& host) {
    if (message.numbers.size() != 1 || message.texts.size() % 2 != 1) return;
    Outcome outcome{{message.numbers[0] == 1, message.texts[0]}, {}, host};
    for (size_t i = 1; i + 1 < message.texts.size(); i += 2) {
      const std::optional<int> rank = parse_number<int>(message.texts[i]);
      if (!rank) return;
      outcome.present.push_back({*rank, message.texts[i + 1]});
    }
    heard_ = std::move(outcome);
  }

  void greet_strangers() {
    for (Accepted accepted = accept_at(call_.port_.listener()); accepted.socket;
         accepted = accept_at(call_.port_.listener())) {
      if (strangers_.size() >= kMostCallers) strangers_.pop_front();
      strangers_.emplace_back(std::move(accepted.socket), kLargestHello);
    }
    for (auto each = strangers_.begin(); each != strangers_.end();) {
      std::string why;
      const bool open = each->receive(why);
      std::optional<StoreMessage> hello;
      bool sane = true;
      try {
        hello = each->next();
      } catch (const DistError&) {
        sane = false;
      }
      // One that came to an earlier roll has ended its connection since.
      if (hello && open && each->receive(why)) admit(std::move(*each), std::move(*hello));
      each = hello || !open || !sane ? strangers_.erase(each) : std::next(each);
    }
  }

  /// Closes the connection of one that does not know the key.
  void admit(Connection connection, StoreMessage hello) {
    if (hello.kind != Kind::kHello || !has_form(hello, 1, 3) || hello.texts[0] != kRollMagic)
      return;
    if (!same_secret(hello.texts[1], call_.key_)) return;
    const int64_t rank = hello.numbers[0];
    if (rank < 0 || rank >= static_cast<int64_t>(size()) || rank == call_.rank_) return;
    Other& other = others_[static_cast<size_t>(rank)];
    other.inward.emplace(std::move(connection));
    other.told = std::move(hello.texts[2]);
    other.came = Clock::now();
  }

  RollCall& call_;
  const std::string& told_;
  milliseconds wait_;
  Clock::time_point begin_ = Clock::now();
  std::vector<Other> others_;  ///< by rank
  std::list<Connection> strangers_;
  std::optional<Outcome> heard_;
};

RollCall::RollCall(int rank, std::string key, bool local)
    : RollCall(rank, std::move(key), OpenPort(local)) {}

RollCall::RollCall(int rank, std::string key, OpenPort port)
    : rank_(rank), key_(std::move(key)), port_(std::move(port)) {}

void RollCall::find_others_at(std::vector<std::string> descriptions, std::vector<bool> near,
                              const std::vector<int>& order) {
  LS_ASSERT(descriptions.size() == near.size());
  LS_ASSERT(order.empty() || order.size() == near.size());
  descriptions_ = std::move(descriptions);
  near_ = std::move(near);
  turns_.resize(near_.size());
  std::iota(turns_.begin(), turns_.end(), size_t{0});
  for (size_t turn = 0; turn < order.size(); ++turn) {
    turns_[static_cast<size_t>(order[turn])] = turn;
  }
}

RollCall::Outcome RollCall::call(const std::string& told, milliseconds wait, const Decide& decide) {
  return Round(*this, told, wait).run(decide);
}

}  // namespace lockstep::dist
