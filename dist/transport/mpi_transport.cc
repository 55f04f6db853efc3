#include "dist/transport/mpi_transport.h"

#include <mpi.h>
#include <poll.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <numeric>
#include <thread>
#include <utility>

#include "core/base/check.h"
#include "dist/transport/event_queues.h"
#include "dist/transport/pacing.h"
#include "dist/transport/shm_transport.h"

namespace lockstep::dist {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

std::string text_of(int code) {
  std::string text(MPI_MAX_ERROR_STRING, '\0');
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) return fmt::format("{}", code);
  text.resize(static_cast<size_t>(length));
  return text;
}

void check(int code, const char* call) {
  LS_CHECK(code == MPI_SUCCESS, BackendError, "[mpi] {} failed: {}.", call, text_of(code));
}

/// A duplicated communicator that returns errors instead of aborting.
class Comm {
 public:
  Comm() = default;
  static Comm duplicate(MPI_Comm of) {
    Comm result;
    check(MPI_Comm_dup(of, &result.handle_), "MPI_Comm_dup");
    check(MPI_Comm_set_errhandler(result.handle_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    return result;
  }
  static Comm of_node(MPI_Comm of, int rank) {
    Comm result;
    check(MPI_Comm_split_type(of, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &result.handle_),
          "MPI_Comm_split_type");
    check(MPI_Comm_set_errhandler(result.handle_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
    return result;
  }
  Comm(Comm&& other) noexcept : handle_(std::exchange(other.handle_, MPI_COMM_NULL)) {}
  Comm& operator=(Comm&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }

  MPI_Comm get() const noexcept { return handle_; }
  int rank() const { return ask(MPI_Comm_rank, "MPI_Comm_rank"); }
  int size() const { return ask(MPI_Comm_size, "MPI_Comm_size"); }
  /// Not called by a destructor, as MPI must not be called after a failure.
  void free() noexcept {
    if (handle_ != MPI_COMM_NULL) (void)MPI_Comm_free(&handle_);
  }

 private:
  int ask(int (*question)(MPI_Comm, int*), const char* call) const {
    int answer = 0;
    check(question(handle_, &answer), call);
    return answer;
  }

  MPI_Comm handle_ = MPI_COMM_NULL;
};

/// Waits for a request during the start, when no messages are in flight, without occupying a core.
void wait(MPI_Request& request, Clock::time_point deadline, const char* call) {
  for (microseconds nap{50};; nap = std::min(2 * nap, microseconds(2000))) {
    int done = 0;
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), call);
    if (done != 0) return;
    LS_CHECK(Clock::now() < deadline, TimeoutError,
             "[mpi] not all ranks came to {} in time. Look at what the other ranks do.", call);
    std::this_thread::sleep_for(nap);
  }
}

std::vector<std::string> all_gather(const Comm& communicator, const std::string& text,
                                    Clock::time_point deadline) {
  LS_CHECK(text.size() <= 1 << 20, BackendError, "[mpi] a text of {} bytes: expected at most 2^20.",
           text.size());
  const auto size = static_cast<size_t>(communicator.size());
  const int own = static_cast<int>(text.size());
  std::vector<int> lengths(size);
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallgather(&own, 1, MPI_INT, lengths.data(), 1, MPI_INT, communicator.get(), &request),
        "MPI_Iallgather");
  wait(request, deadline, "MPI_Iallgather");
  std::vector<int> places(size);
  std::exclusive_scan(lengths.begin(), lengths.end(), places.begin(), 0);
  const auto total = static_cast<size_t>(places.back()) + static_cast<size_t>(lengths.back());
  std::string texts(total, '\0');
  check(MPI_Iallgatherv(text.data(), own, MPI_BYTE, texts.data(), lengths.data(), places.data(),
                        MPI_BYTE, communicator.get(), &request),
        "MPI_Iallgatherv");
  wait(request, deadline, "MPI_Iallgatherv");
  std::vector<std::string> result;
  for (size_t i = 0; i < size; ++i) {
    result.push_back(texts.substr(static_cast<size_t>(places[i]), static_cast<size_t>(lengths[i])));
  }
  return result;
}

/// Compares what the ranks must have alike, before anything that would wait for ever otherwise.
void compare_ranks(const Comm& communicator, const MpiOptions& options,
                   Clock::time_point deadline) {
  if (!options.compare) return;
  const std::vector<std::string> told = all_gather(communicator, options.told, deadline);
  try {
    options.compare(communicator.rank(), told);
  } catch (const Error&) {
    // No rank may end before the others have compared as well.
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Ibarrier(communicator.get(), &request), "MPI_Ibarrier");
    wait(request, deadline, "MPI_Ibarrier");
    throw;
  }
}

/// Initialises MPI if the program has not, and then also finalises it.
class Session {
 public:
  Session() {
    int started = 0;
    check(MPI_Initialized(&started), "MPI_Initialized");
    if (started != 0) {
      join();
      return;
    }
    // epoll's queue can be waited for; with Open MPI's default, poll, its events could only be
    // polled.
    setenv("OMPI_MCA_opal_event_include", "epoll", 0);
    const std::set<int> before = open_event_queues();
    int provided = MPI_THREAD_SINGLE;
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
    ends_it_ = true;
    LS_CHECK(provided >= MPI_THREAD_FUNNELED, BackendError,
             "[mpi] this MPI is for programs of one thread: expected MPI_THREAD_FUNNELED.");
    std::ranges::set_difference(open_event_queues(), before, std::back_inserter(queues_));
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Collective.
  void end() noexcept {
    if (ends_it_) (void)MPI_Finalize();
  }
  /// The epoll queues that MPI made.
  const std::vector<int>& queues() const noexcept { return queues_; }

 private:
  static void join() {
    int provided = MPI_THREAD_SINGLE;
    int is_main = 0;
    check(MPI_Query_thread(&provided), "MPI_Query_thread");
    check(MPI_Is_thread_main(&is_main), "MPI_Is_thread_main");
    LS_CHECK(provided >= MPI_THREAD_SERIALIZED || (provided >= MPI_THREAD_FUNNELED && is_main != 0),
             BackendError,
             "[mpi] the program has started MPI for calls of another thread alone. Ask "
             "MPI_Init_thread for MPI_THREAD_SERIALIZED, or leave the start to Lockstep.");
  }

  bool ends_it_ = false;
  std::vector<int> queues_;
};

class MpiTransportImpl final : public MpiTransport {
 public:
  explicit MpiTransportImpl(const MpiOptions& options)
      : control_(Comm::duplicate(MPI_COMM_WORLD)),
        data_(Comm::duplicate(MPI_COMM_WORLD)),
        node_(Comm::of_node(control_.get(), control_.rank())),
        rank_(control_.rank()),
        size_(control_.size()),
        local_rank_(node_.rank()),
        local_size_(node_.size()) {
    find_tag_limit();
    const auto deadline = Clock::now() + options.start_limit;
    compare_ranks(control_, options, deadline);
    local_.resize(static_cast<size_t>(size_), -1);
    std::vector<int> names;
    for (const std::string& text : all_gather(node_, fmt::format("{}", rank_), deadline)) {
      names.push_back(std::stoi(text));
    }
    for (const std::string& text : all_gather(control_, fmt::format("{}", names[0]), deadline)) {
      hosts_.push_back(std::stoi(text));
    }
    if (options.shared_memory) {
      for (size_t i = 0; i < names.size(); ++i) {
        local_[static_cast<size_t>(names[i])] = static_cast<int>(i);
      }
      const auto gather = [&](const std::string& text) {
        return all_gather(node_, text, deadline);
      };
      shm_ = std::make_unique<ShmTransport>(local_rank_, local_size_, gather,
                                            ShmTransport::Options{0, names});
    } else {
      const auto alone = [](const std::string& text) { return std::vector{text}; };
      shm_ = std::make_unique<ShmTransport>(0, 1, alone);
    }
    uses_mpi_ = std::ranges::count_if(local_, [](int rank) { return rank < 0; }) >
                (options.shared_memory ? 0 : 1);
    files_.resize(1);
    for (const int queue : session_.queues()) files_.push_back({queue, POLLIN, 0});
  }

  ~MpiTransportImpl() override {
    shm_.reset();
    if (!broken_.empty() || !requests_.empty()) return;
    node_.free();
    data_.free();
    control_.free();
    session_.end();
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int local_rank() const override { return local_rank_; }
  int local_size() const override { return local_size_; }
  const std::vector<int>& hosts() const override { return hosts_; }
  uint64_t tag_limit() const override { return tag_limit_; }
  size_t segment_bytes() const override {
    // With its header this fits in what Open MPI sends over TCP at once (eagerly).
    return uses_mpi_ ? size_t{60} << 10 : shm_->segment_bytes();
  }
  int window() const override { return uses_mpi_ ? 32 : shm_->window(); }

  void send(int to, uint64_t tag, const void* data, size_t bytes, Message& message) override {
    const int local = local_[static_cast<size_t>(to)];
    if (local >= 0) return shm_->send(local, tag, data, bytes, message);
    if (!may_begin(message, tag, bytes)) return;
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, to, static_cast<int>(tag),
                               data_.get(), &request);
    begun(code, "MPI_Isend", request, {&message, bytes, to, false});
  }

  void receive(int from, uint64_t tag, void* data, size_t bytes, Message& message) override {
    const int local = local_[static_cast<size_t>(from)];
    if (local >= 0) return shm_->receive(local, tag, data, bytes, message);
    if (!may_begin(message, tag, bytes)) return;
    MPI_Request request = MPI_REQUEST_NULL;
    const int code = MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, from, static_cast<int>(tag),
                               data_.get(), &request);
    begun(code, "MPI_Irecv", request, {&message, bytes, from, true});
  }

  void cancel(Message& message) noexcept override {
    const auto entry =
        std::ranges::find_if(entries_, [&](const Entry& one) { return one.message == &message; });
    if (entry == entries_.end()) return shm_->cancel(message);
    const auto index = static_cast<size_t>(entry - entries_.begin());
    MPI_Request request = requests_[index];
    const bool receives = entry->receives;
    forget(index);
    message.state = Message::State::kIdle;
    if (!broken_.empty() || call_back(request, receives)) return;
    break_off("a message that was cancelled could not be called back");
  }

  bool progress() override {
    bool ended = shm_->progress();
    ended |= std::exchange(ended_, false);
    if (!broken_.empty()) return ended;
    if (!requests_.empty()) {
      // Open MPI first looks for completed requests and makes progress only if there are none: the
      // second call finds those completed by that progress.
      if (test() || test()) {
        sleep_policy_.ended();
        ended = true;
      }
    } else if (uses_mpi_) {
      // MPI makes progress only when called, even on data of sends that have completed.
      int found = 0;
      (void)MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, control_.get(), &found, MPI_STATUS_IGNORE);
    }
    return ended;
  }

  void sleep(microseconds limit) override {
    if (!uses_mpi_ || !broken_.empty()) return shm_->sleep(limit);
    rest_policy_.adapt();
    const microseconds rest = rest_policy_.rest(requests_.size());
    rest_policy_.start(rest.count() > 0);
    // Passing a file, only the bell's, avoids the spinning before a sleep without files.
    if (rest.count() > 0) return shm_->sleep(std::min(limit, rest), {files_.data(), 1});
    const microseconds longest = std::min(limit, sleep_policy_.longest(!requests_.empty()));
    const Clock::time_point start = Clock::now();
    shm_->sleep(longest, files_);
    const bool event = std::any_of(files_.begin() + 1, files_.end(),
                                   [](const pollfd& file) { return file.revents != 0; });
    const bool in_time = Clock::now() - start < longest;
    sleep_policy_.slept(event     ? SleepPolicy::End::kEvent
                        : in_time ? SleepPolicy::End::kOther
                                  : SleepPolicy::End::kTime);
  }

  void wake() noexcept override { shm_->wake(); }

  std::vector<std::string> all_gather_bytes(std::string text, milliseconds limit) override {
    LS_CHECK(broken_.empty(), BackendError, "[mpi] {}.", broken_);
    try {
      return all_gather(control_, text, Clock::now() + limit);
    } catch (const Error&) {
      break_off("MPI has failed");
      throw;
    }
  }

  void abandon() noexcept override { break_off("the job has failed"); }

 private:
  struct Entry {
    Message* message;
    size_t bytes;  ///< size of a send, or buffer size of a receive
    int peer;
    bool receives;
  };

  void find_tag_limit() {
    const int* most = nullptr;
    int found = 0;
    check(MPI_Comm_get_attr(data_.get(), MPI_TAG_UB, &most, &found), "MPI_Comm_get_attr");
    LS_CHECK(found != 0 && *most >= (1 << 30) - 1, BackendError,
             "[mpi] tags go up to {}: expected at least 2^30 - 1. Use another MPI.",
             found != 0 ? *most : 0);
    tag_limit_ = static_cast<uint64_t>(*most) + 1;
  }

  static void fail(Message& message, std::string error) {
    message.error = std::move(error);
    message.state = Message::State::kFailed;
  }

  /// Prepares `message`; returns false if it fails at once.
  bool may_begin(Message& message, uint64_t tag, size_t bytes) {
    message = {Message::State::kPending, 0, {}};
    if (!broken_.empty()) {
      fail(message, broken_);
    } else if (bytes > INT_MAX || tag >= tag_limit_) {
      fail(message, fmt::format("MPI takes no message of {} bytes with tag {}", bytes, tag));
    } else {
      return true;
    }
    ended_ = true;
    return false;
  }

  void begun(int code, const char* call, MPI_Request request, const Entry& entry) {
    if (code == MPI_SUCCESS) {
      requests_.push_back(request);
      entries_.push_back(entry);
      return;
    }
    fail(*entry.message, fmt::format("{} failed for rank {}: {}", call, entry.peer, text_of(code)));
    ended_ = true;
  }

  /// Handles requests that MPI has completed; returns whether there were any.
  bool test() {
    const auto count = requests_.size();
    if (count == 0) return false;
    indices_.resize(count);
    statuses_.resize(count);
    int done = 0;
    const int code = MPI_Testsome(static_cast<int>(count), requests_.data(), &done, indices_.data(),
                                  statuses_.data());
    if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) {
      break_off(fmt::format("MPI_Testsome failed: {}", text_of(code)));
      return true;
    }
    if (done <= 0) return false;
    // In descending order: `forget` moves the last entry into the gap, which must not be one still
    // to be handled.
    std::vector<int>& order = order_;
    order.resize(static_cast<size_t>(done));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, std::greater{},
                      [&](int i) { return indices_[static_cast<size_t>(i)]; });
    for (const int i : order) {
      const auto at = static_cast<size_t>(i);
      const auto index = static_cast<size_t>(indices_[at]);
      rest_policy_.ended(entries_[index].bytes);
      end(entries_[index], code == MPI_SUCCESS ? MPI_SUCCESS : statuses_[at].MPI_ERROR,
          statuses_[at]);
      forget(index);
    }
    return true;
  }

  static void end(const Entry& entry, int code, const MPI_Status& status) {
    Message& message = *entry.message;
    int bytes = 0;
    if (entry.receives) {
      const int counted = MPI_Get_count(&status, MPI_BYTE, &bytes);
      if (code == MPI_SUCCESS) code = counted;
    }
    message.bytes = entry.receives ? static_cast<size_t>(std::max(bytes, 0)) : entry.bytes;
    if (code == MPI_SUCCESS) {
      message.state = Message::State::kDone;
      return;
    }
    // For a truncated message MPI may report the size of the buffer instead of the message's.
    const bool cut = entry.receives && code == MPI_ERR_TRUNCATE;
    message.bytes = cut ? std::max(message.bytes, entry.bytes + 1) : 0;
    fail(message, fmt::format("MPI failed with rank {}: {}", entry.peer, text_of(code)));
  }

  void forget(size_t index) noexcept {
    requests_[index] = requests_.back();
    entries_[index] = entries_.back();
    requests_.pop_back();
    entries_.pop_back();
  }

  /// Cancels a request; returns whether MPI has released its memory.
  static bool call_back(MPI_Request& request, bool receives) noexcept {
    if (receives && MPI_Cancel(&request) != MPI_SUCCESS) return false;
    const Clock::time_point deadline = Clock::now() + milliseconds(100);
    while (true) {
      int done = 0;
      // A failed request has ended too.
      const int code = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
      if (done != 0 || request == MPI_REQUEST_NULL) return true;
      if (code != MPI_SUCCESS || Clock::now() > deadline) return false;
      std::this_thread::sleep_for(microseconds(200));
    }
  }

  /// Fails all messages and stops calling MPI.
  void break_off(std::string reason) noexcept {
    if (!broken_.empty()) return;
    broken_ = std::move(reason);
    for (const Entry& entry : entries_) fail(*entry.message, broken_);
    ended_ = ended_ || !entries_.empty();
    entries_.clear();
  }

  Session session_;
  Comm control_;  ///< for the start and all_gather_bytes
  Comm data_;     ///< for messages
  Comm node_;
  int rank_;
  int size_;
  int local_rank_;
  int local_size_;
  uint64_t tag_limit_ = 0;
  std::vector<int> hosts_;  ///< by rank: the lowest rank of its node
  std::vector<int> local_;  ///< by rank: its rank in shm_, or -1
  std::unique_ptr<ShmTransport> shm_;
  bool uses_mpi_ = false;
  std::vector<pollfd> files_;  ///< the first is for the bell, the others are MPI's event queues
  SleepPolicy sleep_policy_;
  RestPolicy rest_policy_;
  bool ended_ = false;  ///< a message has ended outside of progress()
  std::string broken_;  ///< why MPI is not called any more

  // requests_[i] belongs to entries_[i].
  std::vector<MPI_Request> requests_;
  std::vector<Entry> entries_;
  std::vector<int> indices_;
  std::vector<int> order_;
  std::vector<MPI_Status> statuses_;
};

}  // namespace

bool has_mpi() noexcept { return true; }

std::unique_ptr<MpiTransport> connect_mpi(const MpiOptions& options) {
  return std::make_unique<MpiTransportImpl>(options);
}

}  // namespace lockstep::dist
