#include "dist/rendezvous/tcp_mesh.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <list>
#include <string_view>
#include <thread>
#include <utility>

#include "core/base/check.h"
#include "dist/rendezvous/rank_list.h"
#include "dist/rendezvous/secret.h"
#include "dist/rendezvous/socket.h"

namespace lockstep::dist {
namespace {

using Clock = std::chrono::steady_clock;

/// What the side that connects says first, in full; the other side answers with the same about
/// itself.
struct Greeting {
  static constexpr size_t kSecret = 32;

  std::array<char, 16> magic{};
  int32_t rank = 0;
  std::array<char, kSecret> secret{};
};
constexpr std::string_view kRankMagic = "lockstep-rank-1";

/// Time for one address of a peer: a host may have some that cannot be reached from here.
constexpr auto kTryLimit = std::chrono::seconds(3);
/// Connections that have not said who they are; the oldest makes way for a new one.
constexpr size_t kNewcomers = 256;
/// Before a connection that has ended is made again.
constexpr auto kPause = std::chrono::milliseconds(5);

Greeting own_greeting(int rank, const std::string& secret) {
  Greeting greeting;
  kRankMagic.copy(greeting.magic.data(), greeting.magic.size());
  greeting.rank = rank;
  secret.copy(greeting.secret.data(), greeting.secret.size());
  return greeting;
}

bool is_genuine(const Greeting& greeting, const Greeting& own) {
  return greeting.magic == own.magic && same_secret({greeting.secret.data(), Greeting::kSecret},
                                                    {own.secret.data(), Greeting::kSecret});
}

/// A connection whose other side has not greeted yet.
struct Newcomer {
  Descriptor socket;
  int expected = -1;  ///< rank of the other side, if this one has connected to it
  std::array<char, sizeof(Greeting)> bytes{};
  size_t got = 0;
};

enum class Reading : uint8_t { kGoesOn, kWhole, kEnded };

/// Reads no byte beyond the greeting.
Reading read_greeting(Newcomer& newcomer) {
  while (newcomer.got < sizeof(Greeting)) {
    const ssize_t bytes = ::recv(newcomer.socket.get(), newcomer.bytes.data() + newcomer.got,
                                 sizeof(Greeting) - newcomer.got, 0);
    if (bytes > 0) {
      newcomer.got += static_cast<size_t>(bytes);
    } else if (bytes < 0 && errno == EINTR) {
      continue;
    } else {
      return bytes < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? Reading::kGoesOn
                                                                    : Reading::kEnded;
    }
  }
  return Reading::kWhole;
}

/// A new connection's buffer is empty: it takes a greeting at once, or the connection has ended.
bool greet(const Descriptor& socket, const Greeting& own) {
  return ::send(socket.get(), &own, sizeof(own), MSG_NOSIGNAL) == sizeof(own);
}

Descriptor reach(int rank, const std::string& description, bool near, Clock::time_point deadline) {
  std::string tried;
  for (const Endpoint& endpoint : endpoints_of(description, near)) {
    Connected connected = connect_to(endpoint, std::min(deadline, Clock::now() + kTryLimit));
    if (connected.socket) return std::move(connected.socket);
    tried += fmt::format("\n{}: {}", to_string(endpoint), connected.error);
  }
  throw BackendError(fmt::format(
      "[tcp] rank {} is not reached at any address of its host ({}): expected one to answer. Look "
      "at the network between the hosts, and at firewalls: ranks listen on any port.{}",
      rank, host_name(), tried));
}

}  // namespace

TcpMesh::TcpMesh(int rank, std::string secret, bool local)
    : rank_(rank), secret_(std::move(secret)), port_(local) {
  LS_ASSERT(secret_.size() == Greeting::kSecret);
}

std::vector<Descriptor> TcpMesh::connect(const std::vector<int>& peers,
                                         const std::vector<std::string>& descriptions,
                                         const std::vector<bool>& near,
                                         Clock::time_point deadline) {
  const Greeting own = own_greeting(rank_, secret_);
  std::vector<Descriptor> sockets(descriptions.size());
  std::vector<int> missing = peers;
  std::list<Newcomer> newcomers;
  // The systems of peers that have not come here yet accept for them.
  const auto call = [&](int peer) {
    const auto index = static_cast<size_t>(peer);
    Newcomer& newcomer = newcomers.emplace_back();
    newcomer.socket = reach(peer, descriptions[index], near[index], deadline);
    newcomer.expected = peer;
    (void)greet(newcomer.socket, own);
  };
  for (const int peer : peers) {
    if (peer < rank_) call(peer);
  }
  const auto admit = [&](Newcomer& newcomer) {
    Greeting greeting;
    std::memcpy(&greeting, newcomer.bytes.data(), sizeof(greeting));
    const auto found = std::ranges::find(missing, greeting.rank);
    if (!is_genuine(greeting, own) || found == missing.end()) return false;
    const bool accepted = newcomer.expected < 0;
    if (accepted ? greeting.rank < rank_ : greeting.rank != newcomer.expected) return false;
    if (accepted && !greet(newcomer.socket, own)) return false;
    sockets[static_cast<size_t>(greeting.rank)] = std::move(newcomer.socket);
    missing.erase(found);
    return true;
  };
  while (!missing.empty()) {
    LS_CHECK(Clock::now() < deadline, TimeoutError,
             "[tcp] rank {} is not connected with {} in time. Look at what they do.", rank_,
             rank_list(missing));
    std::vector<pollfd> files = {{port_.listener().get(), POLLIN, 0}};
    for (const Newcomer& newcomer : newcomers) files.push_back({newcomer.socket.get(), POLLIN, 0});
    const int ready =
        ::poll(files.data(), files.size(), poll_milliseconds(deadline, std::chrono::minutes(1)));
    LS_CHECK(ready >= 0 || errno == EINTR, BackendError, "[tcp] poll failed: {}.",
             std::strerror(errno));
    if (ready <= 0) continue;
    std::vector<int> again;
    size_t at = 1;
    for (auto newcomer = newcomers.begin(); newcomer != newcomers.end(); ++at) {
      Reading reading = Reading::kGoesOn;
      if (files[at].revents != 0) reading = read_greeting(*newcomer);
      if (reading == Reading::kGoesOn) {
        ++newcomer;
        continue;
      }
      const bool admitted = reading == Reading::kWhole && admit(*newcomer);
      // Another program may have been at that address, or the peer had too many newcomers.
      if (!admitted && newcomer->expected >= 0) again.push_back(newcomer->expected);
      newcomer = newcomers.erase(newcomer);
    }
    for (const int peer : again) {
      LS_CHECK(Clock::now() + kPause < deadline, TimeoutError,
               "[tcp] what answers at the address of rank {} is not that rank. Look at what it "
               "does.",
               peer);
      std::this_thread::sleep_for(kPause);
      call(peer);
    }
    if (files[0].revents == 0) continue;
    for (Accepted accepted = accept_at(port_.listener()); accepted.socket;
         accepted = accept_at(port_.listener())) {
      const auto is_stranger = [](const Newcomer& one) { return one.expected < 0; };
      if (static_cast<size_t>(std::ranges::count_if(newcomers, is_stranger)) >= kNewcomers) {
        newcomers.erase(std::ranges::find_if(newcomers, is_stranger));
      }
      newcomers.emplace_back().socket = std::move(accepted.socket);
    }
  }
  port_.close();
  return sockets;
}

std::vector<Descriptor> connect_mesh(
    int rank, const std::string& secret, const std::vector<std::string>& first_addresses,
    const std::function<std::vector<std::string>(std::string)>& all_gather,
    const std::vector<int>& peers, const std::vector<bool>& near, std::chrono::milliseconds limit) {
  const auto deadline = Clock::now() + limit;
  const bool local = std::ranges::all_of(near, [](bool is) { return is; });
  TcpMesh mesh(rank, secret, local);
  const std::vector<std::string> descriptions = all_gather(mesh.description(first_addresses));
  return mesh.connect(peers, descriptions, near, deadline);
}

}  // namespace lockstep::dist
