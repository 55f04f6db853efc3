#include "dist/rendezvous/newcomer.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "core/base/check.h"
#include "dist/rendezvous/socket.h"

namespace lockstep::dist {

namespace {

using Clock = std::chrono::steady_clock;
using Kind = StoreMessage::Kind;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kBetweenKnocks(200);
/// For one attempt to connect, and for each answer to a process that has only knocked.
constexpr seconds kOneKnock(5);

void add_facts(std::vector<std::string>& texts, const std::vector<JoinFact>& facts) {
  for (const JoinFact& fact : facts) {
    texts.push_back(fact.what);
    texts.push_back(fact.text);
  }
}

}  // namespace

Newcomer::Newcomer(const NewcomerOptions& options)
    : address_(options.address), goes_on_(options.goes_on), doors_(options.doors) {
  const auto until = Clock::now() + options.limit;
  while (!knock(options, until)) {
    LS_CHECK(Clock::now() < until && (!goes_on_ || goes_on_()), TimeoutError,
             "[join] no job that can be joined at {} within {:.3g} s: {}. Expected one that trains "
             "with parallel.elastic.",
             options.address, std::chrono::duration<double>(options.limit).count(), last_);
    std::this_thread::sleep_for(kBetweenKnocks);
  }
}

bool Newcomer::knock(const NewcomerOptions& options, Clock::time_point until) {
  if (knock_at(options.address, options, until)) return true;
  const std::string why = last_;
  for (const std::string& door : options.doors) {
    try {
      if (door != options.address && knock_at(door, options, until)) return true;
    } catch (const DistError&) {
      // At that host another job listens there, or its name is not known here.
    }
  }
  last_ = why;
  return false;
}

bool Newcomer::knock_at(const std::string& address, const NewcomerOptions& options,
                        Clock::time_point until) {
  address_ = address;
  try {
    Connected connected =
        connect_to(parse_endpoint(address), std::min(until, Clock::now() + kOneKnock));
    last_ = connected.error;
    if (!connected.socket) return false;
    keep_alive(connected.socket, kJoinSilence);
    connection_.emplace(std::move(connected.socket), kLargestStoreMessage);
  } catch (const UnknownHost& error) {
    if (!options.host_may_come) throw;
    last_ = error.what();
    return false;
  }
  try {
    connection_->send({Kind::kHello,
                       0,
                       {kJoinProtocol, ::getpid()},
                       {kJoinMagic, options.job, options.secret, host_name()}});
    (void)receive(kOneKnock);
    StoreMessage facts{Kind::kSet, 0, {}, {}};
    add_facts(facts.texts, options.facts);
    connection_->send(facts);
    terms_ = receive(kOneKnock).numbers;
    return true;
  } catch (const PeerLostError& error) {
    last_ = error.what();  // the store of a job that has not begun to train, or a leader that ends
    return false;
  }
}

Newcomer::Outcome Newcomer::wait(const std::string& place, const std::vector<JoinFact>& facts,
                                 const OnWait& on_wait, const OnGiven& on_given,
                                 milliseconds silence) {
  StoreMessage ready{Kind::kJoin, 0, {}, {place}};
  add_facts(ready.texts, facts);
  connection_->send(ready);
  std::vector<int64_t> told;
  for (;;) {
    StoreMessage message = receive(silence);
    if (goes_on_ && !goes_on_()) return {};
    if (message.kind == Kind::kClosing && message.numbers.size() == 1) {
      return {{}, static_cast<JoinEnd>(message.numbers[0])};
    }
    if (message.kind == Kind::kPost && message.numbers.size() == 1) {
      connection_.reset();
      return {Call{static_cast<int>(message.numbers[0]), std::move(message.texts)}, {}};
    }
    if (message.kind == Kind::kSet && has_form(message, 0, 1)) {
      if (on_given) on_given(message.texts[0]);
      connection_->send({Kind::kAnswer, message.id, {}, {}});
      continue;
    }
    if (message.kind != Kind::kCheck || message.numbers.size() != 2) continue;
    connection_->send({Kind::kCheck, 0, {}, {}});
    if (message.numbers != told) on_wait(message.numbers[0], message.numbers[1]);
    told = std::move(message.numbers);
    doors_ = std::move(message.texts);
  }
}

StoreMessage Newcomer::receive(milliseconds silence) {
  const auto until = Clock::now() + silence;
  for (bool open = true;;) {
    if (std::optional<StoreMessage> message = connection_->next()) {
      if (message->kind == Kind::kRefusal && has_form(*message, 1, 1)) {
        throw_error(static_cast<StoreStatus>(message->numbers[0]), "[join] " + message->texts[0]);
      }
      return *std::move(message);
    }
    LS_CHECK(open, PeerLostError, "[join] the connection with {} has ended.", address_);
    LS_CHECK(wait_for(connection_->socket(), connection_->unsent_bytes() > 0, until), PeerLostError,
             "[join] the leader at {} has said nothing for {:.3g} s.", address_,
             std::chrono::duration<double>(silence).count());
    connection_->flush();
    std::string why;
    open = connection_->receive(why);
  }
}

}  // namespace lockstep::dist
