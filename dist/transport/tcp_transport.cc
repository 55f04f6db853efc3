#include "dist/transport/tcp_transport.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <map>
#include <utility>

#include "core/base/check.h"

namespace lockstep::dist {
namespace {

using std::chrono::microseconds;

/// Calls of `progress` without a sleep after which the sockets are looked at: messages in shared
/// memory may keep the thread awake.
constexpr uint32_t kCallsBetweenLooks = 8;
/// With half the window 1 Gbit/s is not kept busy: 112 MB/s instead of 118. All of a window may be
/// on its way before its receives are posted.
constexpr size_t kSegment = size_t{128} << 10;
constexpr int kWindow = 32;
static_assert(kSegment * kWindow <= TcpChannel::kEagerBytes);

std::string namespace_of(const char* kind) {
  std::array<char, 64> text{};
  const std::string path = fmt::format("/proc/self/ns/{}", kind);
  const ssize_t bytes = ::readlink(path.c_str(), text.data(), text.size() - 1);
  return bytes > 0 ? std::string(text.data(), static_cast<size_t>(bytes)) : std::string();
}

}  // namespace

std::string host_identity() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  std::array<char, 256> name{};
  // Without a name the others tell hosts apart.
  (void)!::gethostname(name.data(), name.size() - 1);
  return fmt::format("{} {} {} {}", name.data(), boot, namespace_of("pid"), namespace_of("net"));
}

TcpTransport::TcpTransport(int rank, int size, const AllGatherBytes& all_gather,
                           const Options& options)
    : rank_(rank), local_(static_cast<size_t>(size), -1) {
  channels_.resize(static_cast<size_t>(size));
  const std::vector<std::string> hosts =
      all_gather(options.host.empty() ? host_identity() : options.host);
  find_hosts(hosts);
  const std::string& own = hosts[static_cast<size_t>(rank)];
  if (options.shared_memory) {
    std::vector<int> names;
    for (int each = 0; each < size; ++each) {
      if (hosts[static_cast<size_t>(each)] != own) continue;
      local_[static_cast<size_t>(each)] = static_cast<int>(names.size());
      names.push_back(each);
    }
    // On every host the same number of calls gather the texts of all hosts.
    const auto gather_here = [&](const std::string& text) {
      const std::vector<std::string> texts = all_gather(text);
      std::vector<std::string> here;
      for (const int name : names) here.push_back(texts[static_cast<size_t>(name)]);
      return here;
    };
    shm_ = std::make_unique<ShmTransport>(local_rank_, local_size_, gather_here,
                                          ShmTransport::Options{0, names});
  } else {
    const auto alone = [](const std::string& text) { return std::vector{text}; };
    shm_ = std::make_unique<ShmTransport>(0, 1, alone);
  }
  std::vector<int> peers;
  std::vector<bool> near;
  for (int each = 0; each < size; ++each) {
    near.push_back(hosts[static_cast<size_t>(each)] == own);
    if (each != rank && local_[static_cast<size_t>(each)] < 0) peers.push_back(each);
  }
  const bool one_host = std::ranges::all_of(near, [](bool is) { return is; });
  if (one_host && options.shared_memory) return;
  std::vector<Descriptor> sockets = options.connect(peers, near);
  files_.resize(1);
  for (const int peer : peers) {
    const auto index = static_cast<size_t>(peer);
    channels_[index] = std::make_unique<TcpChannel>(std::move(sockets[index]));
    peers_.push_back(index);
    files_.push_back({channels_[index]->fd(), POLLIN, 0});
  }
  readable_.assign(peers_.size(), true);
}

TcpTransport::~TcpTransport() = default;

void TcpTransport::find_hosts(const std::vector<std::string>& hosts) {
  std::map<std::string, int> numbers;
  local_size_ = 0;
  for (size_t each = 0; each < hosts.size(); ++each) {
    const int number = numbers.emplace(hosts[each], static_cast<int>(numbers.size())).first->second;
    hosts_.push_back(number);
    if (static_cast<int>(each) == rank_) {
      host_rank_ = number;
      local_rank_ = local_size_;
    }
    if (hosts[each] == hosts[static_cast<size_t>(rank_)]) ++local_size_;
  }
  host_count_ = static_cast<int>(numbers.size());
}

size_t TcpTransport::segment_bytes() const {
  return peers_.empty() ? shm_->segment_bytes() : kSegment;
}

int TcpTransport::window() const { return peers_.empty() ? shm_->window() : kWindow; }

void TcpTransport::send(int to, uint64_t tag, const void* data, size_t bytes, Message& message) {
  const auto index = static_cast<size_t>(to);
  if (local_[index] >= 0) return shm_->send(local_[index], tag, data, bytes, message);
  channels_[index]->send(tag, data, bytes, message);
}

void TcpTransport::receive(int from, uint64_t tag, void* data, size_t bytes, Message& message) {
  const auto index = static_cast<size_t>(from);
  if (local_[index] >= 0) return shm_->receive(local_[index], tag, data, bytes, message);
  channels_[index]->receive(tag, data, bytes, message);
}

void TcpTransport::cancel(Message& message) noexcept {
  for (const size_t peer : peers_) {
    if (channels_[peer]->cancel(message)) return;
  }
  shm_->cancel(message);
}

bool TcpTransport::progress() {
  bool ended = shm_->progress();
  if (peers_.empty()) return ended;
  if (++calls_ >= kCallsBetweenLooks) look();
  for (size_t i = 0; i < peers_.size(); ++i) {
    TcpChannel& channel = *channels_[peers_[i]];
    if (readable_[i]) {
      readable_[i] = channel.pull();
      close_if_ended(i);
    }
    if (!channel.is_blocked() && channel.has_unsent()) channel.push();
    rest_policy_.ended(channel.take_ended(ended));
  }
  return ended;
}

void TcpTransport::ask_for_events() noexcept {
  calls_ = 0;
  for (size_t i = 0; i < peers_.size(); ++i) {
    const TcpChannel& channel = *channels_[peers_[i]];
    const int events = channel.is_blocked() ? POLLIN | POLLOUT : POLLIN;
    files_[i + 1] = {channel.fd(), static_cast<short>(events), 0};
  }
}

void TcpTransport::note_events() {
  for (size_t i = 0; i < peers_.size(); ++i) {
    const int events = files_[i + 1].revents;
    if ((events & ~POLLOUT) != 0) readable_[i] = true;
    if ((events & POLLOUT) != 0) channels_[peers_[i]]->push();
  }
}

/// Finds out which sockets have bytes, or room for them, now.
void TcpTransport::look() {
  ask_for_events();
  files_[0] = {-1, 0, 0};
  if (::poll(files_.data(), files_.size(), 0) > 0) note_events();
}

void TcpTransport::close_if_ended(size_t peer) {
  TcpChannel& channel = *channels_[peers_[peer]];
  if (channel.end_of_peer().empty() || channel.is_closed()) return;
  channel.close(fmt::format("rank {} {}", peers_[peer], channel.end_of_peer()));
}

void TcpTransport::sleep(microseconds limit) {
  if (peers_.empty()) return shm_->sleep(limit);
  size_t pending = 0;
  for (size_t i = 0; i < peers_.size(); ++i) {
    TcpChannel& channel = *channels_[peers_[i]];
    if (readable_[i] || (!channel.is_blocked() && channel.has_unsent())) return;
    pending += static_cast<size_t>(channel.pending());
  }
  rest_policy_.adapt();
  const microseconds rest = rest_policy_.rest(pending);
  rest_policy_.start(rest.count() > 0);
  if (rest.count() > 0) {
    shm_->sleep(std::min(limit, rest), {files_.data(), 1});
    return look();
  }
  ask_for_events();
  shm_->sleep(limit, files_);
  note_events();
}

}  // namespace lockstep::dist
