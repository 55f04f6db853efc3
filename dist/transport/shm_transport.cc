#include "dist/transport/shm_transport.h"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <new>
#include <sstream>
#include <system_error>
#include <utility>

#include "core/base/check.h"
#include "dist/transport/shm_channel.h"

namespace lockstep::dist {

/// Header of a rank's shared memory. It is followed by a ShmLink for each other rank in order, and
/// then by the rings, whose memory is allocated by their writers.
struct ShmInbox {
  std::array<uint64_t, 2> key{};  ///< random, to verify that this is the right memory
  alignas(64) BellState bell;
  alignas(64) std::atomic<uint32_t> left{0};  ///< 1 when the rank's transport was destroyed
};

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kMostRing = size_t{1} << 20;
constexpr size_t kLeastRing = size_t{16} << 10;
/// Memory of all rings of a rank: with many ranks, rings become smaller than kMostRing.
constexpr size_t kInbox = size_t{32} << 20;
/// Interval of checks whether peers are alive.
constexpr auto kLookInterval = std::chrono::milliseconds(100);
/// Time spent polling before a sleep.
constexpr auto kPolling = std::chrono::microseconds(10);

size_t checked_ring_bytes(size_t asked, int size) {
  if (asked == 0) {
    const size_t share = kInbox / static_cast<size_t>(std::max(size - 1, 1));
    return std::clamp(std::bit_floor(share), 4 * kLeastRing, kMostRing);
  }
  LS_CHECK(std::has_single_bit(asked) && asked >= kLeastRing, BackendError,
           "[shm transport] a ring of {} bytes: expected a power of two of at least {}.", asked,
           kLeastRing);
  return asked;
}

/// Layout of a rank's shared memory.
class Layout {
 public:
  Layout(size_t size, size_t ring_bytes) : size_(size), ring_bytes_(ring_bytes) {}

  size_t bytes() const { return rings() + (size_ - 1) * ring_bytes_; }
  /// Where the rings begin, a whole number of pages.
  size_t rings() const {
    return (links() + (size_ - 1) * sizeof(ShmLink) + kPage - 1) / kPage * kPage;
  }
  /// Where the ring begins that rank `from` writes to in the memory of rank `owner`.
  size_t ring(size_t owner, size_t from) const { return rings() + slot(owner, from) * ring_bytes_; }
  /// The link and ring that rank `from` writes to in the memory of rank `owner`.
  ShmChannel::End end(std::byte* memory, size_t owner, size_t from) const {
    std::byte* const link = memory + links() + slot(owner, from) * sizeof(ShmLink);
    return {std::launder(reinterpret_cast<ShmLink*>(link)), memory + ring(owner, from)};
  }
  void construct(std::byte* memory) const {
    new (memory) ShmInbox;
    for (size_t i = 0; i + 1 < size_; ++i) new (memory + links() + i * sizeof(ShmLink)) ShmLink;
  }

 private:
  static constexpr size_t kPage = 4096;
  static constexpr size_t links() { return sizeof(ShmInbox); }
  static constexpr size_t slot(size_t owner, size_t from) { return from < owner ? from : from - 1; }

  size_t size_;
  size_t ring_bytes_;
};

std::array<uint64_t, 2> random_key() {
  std::array<uint64_t, 2> key{};
  const ssize_t got = getrandom(key.data(), sizeof(key), 0);
  const int error = errno;
  LS_CHECK(got == static_cast<ssize_t>(sizeof(key)), BackendError,
           "[shm transport] getrandom failed: {}.", std::system_category().message(error));
  return key;
}

/// Describes a rank's memory to the other ranks.
struct Description {
  int pid = 0;
  int fd = 0;
  int bell_fd = 0;
  size_t ring_bytes = 0;
  std::array<uint64_t, 2> key{};

  std::string text() const {
    return fmt::format("{} {} {} {} {} {}", pid, fd, bell_fd, ring_bytes, key[0], key[1]);
  }
  static Description parse(const std::string& text) {
    Description result;
    std::istringstream stream(text);
    stream >> result.pid >> result.fd >> result.bell_fd >> result.ring_bytes >> result.key[0] >>
        result.key[1];
    LS_CHECK(!stream.fail(), BackendError, "[shm transport] \"{}\" describes no memory.", text);
    return result;
  }
};

OwnedFd open_pipe(int pid, int fd) {
  const std::string path = fmt::format("/proc/{}/fd/{}", pid, fd);
  OwnedFd pipe(open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  const int error = errno;
  LS_CHECK(pipe, BackendError, "[shm transport] cannot open {}: {}. Raise `ulimit -n`.", path,
           std::system_category().message(error));
  return pipe;
}

constexpr char kFailed = '!';

/// Runs `part` on every rank and returns all ranks' texts. Throws on all ranks if `part` threw on
/// one.
template <class Part>
std::vector<std::string> together(const AllGatherBytes& all_gather, Part part) {
  std::string text;
  std::exception_ptr own;
  try {
    part(text);
  } catch (const std::exception& error) {
    own = std::current_exception();
    text = kFailed + std::string(error.what());
  }
  std::vector<std::string> texts = all_gather(text);
  if (own) std::rethrow_exception(own);
  for (size_t rank = 0; rank < texts.size(); ++rank) {
    LS_CHECK(texts[rank].empty() || texts[rank][0] != kFailed, BackendError,
             "[shm transport] another process of this machine failed: {}", texts[rank].substr(1));
  }
  return texts;
}

}  // namespace

ShmTransport::ShmTransport(int rank, int size, const AllGatherBytes& all_gather, Options options)
    : rank_(rank), pid_(getpid()), ring_bytes_(checked_ring_bytes(options.ring_bytes, size)) {
  LS_ASSERT(0 <= rank && rank < size);
  LS_ASSERT(options.names.empty() || options.names.size() == static_cast<size_t>(size));
  peers_.resize(static_cast<size_t>(size));
  const auto inboxes = together(all_gather, [&](std::string& text) { make_inbox(text); });
  LS_ASSERT(inboxes.size() == peers_.size());
  (void)together(all_gather, [&](std::string&) { open_inboxes(inboxes, options.names); });
  memory_.close_fd();
}

ShmTransport::~ShmTransport() {
  // A forked child shares the memory: its copy of this object must not mark the rank as left.
  if (inbox_ == nullptr || getpid() != pid_) return;
  inbox_->left.store(1, std::memory_order_seq_cst);
  for (const Peer& peer : peers_) {
    if (peer.inbox != nullptr) peer.inbox->bell.ring(peer.bell.get());
  }
}

void ShmTransport::make_inbox(std::string& description) {
  const Layout layout(peers_.size(), ring_bytes_);
  memory_ = SharedMemory::create(layout.bytes(), layout.rings());
  layout.construct(memory_.data());
  inbox_ = std::launder(reinterpret_cast<ShmInbox*>(memory_.data()));
  inbox_->key = random_key();
  bell_.attach(inbox_->bell);
  description = Description{pid_, memory_.fd(), bell_.fd(), ring_bytes_, inbox_->key}.text();
}

void ShmTransport::open_inboxes(const std::vector<std::string>& descriptions,
                                const std::vector<int>& names) {
  const Layout layout(peers_.size(), ring_bytes_);
  const auto own = static_cast<size_t>(rank_);
  for (size_t i = 0; i < peers_.size(); ++i) {
    if (i == own) continue;
    const Description other = Description::parse(descriptions[i]);
    LS_CHECK(other.ring_bytes == ring_bytes_, MismatchError,
             "[shm transport] rings of {} bytes here, of {} bytes on rank {}: expected the same.",
             ring_bytes_, other.ring_bytes, i);
    Peer& peer = peers_[i];
    peer.text = fmt::format("rank {} (process {})", names.empty() ? static_cast<int>(i) : names[i],
                            other.pid);
    // Watch before opening the memory: if the key then matches, the pid was not that of another
    // process when the watch began.
    watch_.add(other.pid);
    watched_.push_back(i);
    peer.memory = SharedMemory::open(other.pid, other.fd, layout.bytes());
    peer.memory.close_fd();
    peer.inbox = std::launder(reinterpret_cast<ShmInbox*>(peer.memory.data()));
    LS_CHECK(peer.inbox->key == other.key, BackendError,
             "[shm transport] process {} holds other memory than it told of: it may be another "
             "process, of another container. Set LOCKSTEP_SHM=0 to do without shared memory.",
             other.pid);
    peer.bell = open_pipe(other.pid, other.bell_fd);
    peer.channel = std::make_unique<ShmChannel>(
        layout.end(peer.memory.data(), i, own), layout.end(memory_.data(), own, i), ring_bytes_,
        [this, &peer, offset = layout.ring(i, own)] { peer.memory.allocate(offset, ring_bytes_); },
        [state = &peer.inbox->bell, fd = peer.bell.get()] { state->ring(fd); });
  }
}

void ShmTransport::send(int to, uint64_t tag, const void* data, size_t bytes, Message& message) {
  peers_.at(static_cast<size_t>(to)).channel->send(tag, data, bytes, message);
}

void ShmTransport::receive(int from, uint64_t tag, void* data, size_t bytes, Message& message) {
  peers_.at(static_cast<size_t>(from)).channel->receive(tag, data, bytes, message);
}

void ShmTransport::cancel(Message& message) noexcept {
  for (const Peer& peer : peers_) {
    if (peer.channel != nullptr && peer.channel->cancel(message)) return;
  }
}

bool ShmTransport::progress() {
  bool ended = false;
  for (Peer& peer : peers_) {
    if (peer.channel != nullptr) ended |= peer.channel->progress();
  }
  // While messages keep arriving, this rank never sleeps, so check for ended peers here too.
  constexpr uint32_t kCalls = 256;
  if (++calls_ % kCalls == 0) look_after_peers();
  return ended;
}

void ShmTransport::sleep(std::chrono::microseconds limit) { sleep(limit, {}); }

void ShmTransport::sleep(std::chrono::microseconds limit, std::span<pollfd> files) {
  // Do not spin if there are files: their data comes over the network, with a higher latency.
  if (files.empty()) poll(std::min<Clock::duration>(kPolling, limit));
  for (pollfd& file : files) file.revents = 0;
  bell_.prepare(!files.empty());
  for (const Peer& peer : peers_) {
    if (peer.channel != nullptr) peer.channel->before_sleep();
  }
  const auto time = is_idle() ? limit : std::min<std::chrono::microseconds>(limit, kLookInterval);
  if (is_ready()) {
    bell_.stay_awake();
  } else if (files.empty()) {
    bell_.sleep(time);
  } else {
    bell_.sleep(time, files);
  }
  for (const Peer& peer : peers_) {
    if (peer.channel != nullptr) peer.channel->after_sleep();
  }
  woken_.exchange(false, std::memory_order_acq_rel);
  look_after_peers();
}

void ShmTransport::wake() noexcept {
  woken_.store(true, std::memory_order_seq_cst);
  bell_.ring();
}

void ShmTransport::poll(std::chrono::nanoseconds limit) noexcept {
  const Clock::time_point start = Clock::now();
  while (!is_ready() && Clock::now() - start < limit) {
  }
}

bool ShmTransport::is_ready() noexcept {
  if (woken_.load(std::memory_order_seq_cst)) return true;
  return std::ranges::any_of(peers_, [](const Peer& peer) {
    if (peer.channel == nullptr) return false;
    return peer.channel->is_ready() ||
           (!peer.left && peer.inbox->left.load(std::memory_order_seq_cst) != 0);
  });
}

bool ShmTransport::is_idle() const noexcept {
  return std::ranges::all_of(
      peers_, [](const Peer& peer) { return peer.channel == nullptr || peer.channel->is_idle(); });
}

/// Closes the channels of peers that have left or ended.
void ShmTransport::look_after_peers() {
  for (Peer& peer : peers_) {
    if (peer.channel == nullptr || peer.left) continue;
    if (peer.inbox->left.load(std::memory_order_acquire) == 0) continue;
    peer.left = true;
    peer.channel->close(peer.text + " has left");
  }
  const Clock::time_point now = Clock::now();
  if (now - last_look_ < kLookInterval) return;
  last_look_ = now;
  watch_.look([&](size_t number) {
    Peer& peer = peers_[watched_[number]];
    peer.channel->close(peer.text + " has ended");
  });
}

size_t ShmTransport::segment_bytes() const { return ring_bytes_ / 8; }
int ShmTransport::window() const { return 16; }

}  // namespace lockstep::dist
