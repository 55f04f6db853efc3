#include "dist/group/members.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/check.h"
#include "core/base/parse_number.h"
#include "dist/group/agreement.h"
#include "dist/rendezvous/host_addresses.h"
#include "dist/rendezvous/listening.h"
#include "dist/rendezvous/secret.h"
#include "dist/rendezvous/socket.h"
#include "dist/rendezvous/store_server.h"

namespace lockstep::dist {
namespace {

using std::chrono::milliseconds;

/// For ranks that have just come to a roll: one that is not there by then is lost, too.
constexpr std::chrono::seconds kToMeet(5);
constexpr int kMostTries = 8;

HostLayout layout_of(const Communicator& communicator) {
  std::vector<int> ranks(static_cast<size_t>(communicator.size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return communicator.layout_of(ranks);
}

/// Those that came, with those that go on by their new numbers.
Members::Met arranged(const std::vector<RollCall::Present>& came, const Members::Terms& terms,
                      const Members::Start& start) {
  Members::Met met{.present = came,
                   .left_out = {},
                   .rank = 0,
                   .communicator = nullptr,
                   .place = {},
                   .start = start};
  if (!terms.arrange) return met;
  met.present.clear();
  std::vector<bool> goes_on(came.size());
  for (const size_t each : terms.arrange(came)) {
    met.present.push_back(came[each]);
    goes_on[each] = true;
  }
  for (size_t i = 0; i < came.size(); ++i) {
    if (!goes_on[i]) met.left_out.push_back(came[i]);
  }
  return met;
}

/// Text up to the first end of a line, which it takes off.
std::string take_line(std::string& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  std::string line = text.substr(0, end);
  text.erase(0, end + 1);
  return line;
}

}  // namespace

Members::Members(Start start, const Communicator& communicator, ProcessGroup& group)
    : start_(std::move(start)),
      rank_(communicator.rank()),
      local_(start_.door.empty() ? layout_of(communicator).hosts() == 1 : is_local(start_.door)),
      size_(communicator.size()),
      // Known to the ranks of this group alone.
      roll_(rank_, all_gather_texts(group, rank_ == 0 ? random_secret() : "").front(), local_) {
  const HostLayout layout = layout_of(communicator);
  places_ = all_gather_texts(group, host_name() + "\n" + roll_.description());
  for (int rank = 0; rank < size_; ++rank) {
    near_.push_back(layout.host_of(rank) == layout.host_of(rank_));
  }
  find_all();
}

Members::Members(Start start)
    : start_(std::move(start)),
      rank_(0),
      local_(is_local(start_.door)),
      places_(1),
      roll_(rank_, random_secret(), local_) {
  places_[0] = host_name() + "\n" + roll_.description();
  find_all();
}

Members::Members(Start start, int rank, OpenPort port, std::vector<std::string> invitation)
    : start_(std::move(start)),
      rank_(rank),
      local_(is_local(start_.door)),
      roll_(rank_, invitation.empty() ? "" : invitation[0], std::move(port)) {
  LS_CHECK(invitation.size() >= 2, DistError, "[join] the invitation lacks the ranks' places.");
  size_ = parse_number<int>(invitation[1]).value_or(0);
  places_.assign(invitation.begin() + 2, invitation.end());
  LS_CHECK(
      size_ > 0 && size_ <= rank_ && rank_ < std::ssize(places_), DistError,
      "[join] the invitation has places of {} ranks and processes: expected {} ranks, and this "
      "process as number {}.",
      places_.size(), size_, rank_);
  find_all();
}

std::vector<std::string> Members::invitation() const {
  std::vector<std::string> texts = {roll_.key(), fmt::format("{}", size_)};
  texts.insert(texts.end(), places_.begin(), places_.begin() + size_);
  return texts;
}

std::string Members::place_of(const OpenPort& port) {
  return host_name() + "\n" + port.description();
}

bool Members::is_local(const std::string& door) {
  return door.empty() || is_loopback(parse_endpoint(door).host);
}

std::vector<std::string> Members::doors() const {
  std::vector<std::string> doors;
  if (local_ || start_.door.empty()) return doors;
  const uint16_t port = parse_endpoint(start_.door).port;
  for (int rank = 0; rank < size_; ++rank) {
    std::string description = places_[static_cast<size_t>(rank)];
    (void)take_line(description);
    for (const Endpoint& endpoint : endpoints_of(description, false)) {
      std::string door = to_string(Endpoint{endpoint.host, port});
      if (std::ranges::find(doors, door) == doors.end()) doors.push_back(std::move(door));
    }
  }
  return doors;
}

void Members::expect(const std::vector<std::string>& places) {
  places_.insert(places_.end(), places.begin(), places.end());
  find_all();
}

/// Tells the roll where all are. What is not known of a process that is expected is whether it is
/// on this host: it is reached by its address then, if its host has one.
void Members::find_all() {
  hosts_.clear();
  near_.resize(places_.size());
  std::vector<std::string> descriptions = places_;
  std::vector<bool> near = near_;
  for (size_t i = 0; i < places_.size(); ++i) {
    hosts_.push_back(take_line(descriptions[i]));
    near[i] = near[i] || descriptions[i].find('\n') == std::string::npos;
  }
  roll_.find_others_at(std::move(descriptions), std::move(near), order());
}

/// Of deciding. Processes that are expected have no part of the model.
std::vector<int> Members::order() const {
  std::vector<int> ranks(places_.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  std::ranges::stable_sort(ranks, {}, [&](int rank) {
    return rank < size_ ? rank % start_.shard_size : start_.shard_size;
  });
  return ranks;
}

Members::Outcome Members::meet(const Terms& terms) {
  Outcome outcome;
  for (int i = 0; i < kMostTries; ++i) {
    try {
      return try_to_meet(terms);
    } catch (const std::exception& error) {
      // One of those who came was lost before they were connected.
      outcome.why = error.what();
    }
  }
  return outcome;
}

Members::Outcome Members::try_to_meet(const Terms& terms) {
  std::shared_ptr<StoreServer> server;
  const RollCall::Outcome outcome = roll_.call(
      terms.told, terms.wait,
      [&](const std::vector<RollCall::Present>& present) -> RollCall::Decision {
        try {
          std::string obstacle = terms.obstacle(present);
          if (!obstacle.empty()) return {false, std::move(obstacle)};
          const size_t size = terms.arrange ? terms.arrange(present).size() : present.size();
          if (size == 1) return {true, ""};
          server = serve(static_cast<int>(size));
          return {true, fmt::format("{}", parse_endpoint(server->address()).port)};
        } catch (const std::exception& error) {
          return {false, error.what()};
        }
      });
  if (!outcome.decision.goes_on) return {{}, outcome.decision.text};
  const auto is_among = [&](const std::vector<RollCall::Present>& present) {
    return std::ranges::find(present, rank_, &RollCall::Present::rank) != present.end();
  };
  if (!is_among(outcome.present)) return {{}, "the others go on without this rank"};
  Met met = arranged(outcome.present, terms, start_);
  if (!is_among(met.present)) return {{}, "", true};
  return {connect(std::move(met), outcome, std::move(server)), ""};
}

/// The store of so many ranks, at a port that the system chooses.
std::shared_ptr<StoreServer> Members::serve(int size) const {
  return std::make_shared<StoreServer>(StoreServerOptions{.address = to_string(any_port(local_)),
                                                          .job = start_.where.job,
                                                          .secret = start_.where.secret,
                                                          .world_size = size,
                                                          .silence = start_.silence});
}

Members::Met Members::connect(Met met, const RollCall::Outcome& outcome,
                              std::shared_ptr<StoreServer> server) const {
  const auto self = std::ranges::find(met.present, rank_, &RollCall::Present::rank);
  met.rank = static_cast<int>(self - met.present.begin());
  if (met.present.size() == 1) return met;
  std::string host = outcome.caller_host;
  if (host.empty()) {
    const std::vector<std::string> own = local_ ? std::vector<std::string>() : host_addresses();
    host = own.empty() ? "127.0.0.1" : own.front();
  }
  met.start.where.rank = met.rank;
  met.start.where.size = static_cast<int>(met.present.size());
  const Endpoint store{host, parse_number<uint16_t>(outcome.decision.text).value_or(0)};
  met.start.where.address = to_string(store);
  Communicator::Options options = start_.options(met.rank);
  options.start_limit = kToMeet;
  met.communicator = tcp_communicator(met.start.where, options, start_.alike, start_.silence,
                                      &met.place, std::move(server));
  return met;
}

}  // namespace lockstep::dist
