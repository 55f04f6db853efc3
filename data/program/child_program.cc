#include "data/program/child_program.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

#include "core/base/check.h"
#include "core/process/spawn.h"

namespace lockstep::train {
namespace {

using std::chrono::milliseconds;

constexpr size_t kLongestLine = size_t{64} << 10;
constexpr std::chrono::seconds kTimeToEnd(1);

}  // namespace

ChildProgram::ChildProgram(std::string command, milliseconds timeout)
    : command_(std::move(command)), timeout_(timeout) {
  int ends[2];
  // A socket: to write to one whose other end is closed need not raise a signal.
  LS_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0, DataError,
           "[data] `{}` cannot be started: {}.", command_, std::strerror(errno));
  connection_ = Descriptor(ends[0]);
  const Descriptor other(ends[1]);
  const Spawned spawned =
      spawn({"/bin/sh", "-c", command_}, {.input = other.get(), .output = other.get()});
  LS_CHECK(spawned.error == 0, DataError, "[data] `{}` cannot be started: {}.", command_,
           std::strerror(spawned.error));
  process_ = spawned.process;
}

ChildProgram::~ChildProgram() {
  connection_.reset();
  const auto until = Clock::now() + kTimeToEnd;
  while (process_ != 0 && ending().empty() && Clock::now() < until) {
    std::this_thread::sleep_for(milliseconds(2));
  }
  if (process_ == 0) return;
  ::kill(-process_, SIGKILL);
  while (::waitpid(process_, &status_, 0) < 0 && errno == EINTR) {
  }
}

std::string ChildProgram::ending() {
  if (process_ != 0 && ::waitpid(process_, &status_, WNOHANG) == process_) process_ = 0;
  if (process_ != 0) return "";
  return ending_of(status_);
}

void ChildProgram::fail(const std::string& reason) {
  throw DataError(
      fmt::format("[data] the program `{}` does not answer: {}. What it printed stands above; try "
                  "it by hand.",
                  command_, reason));
}

void ChildProgram::wait_for(short events) {
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(until_ - Clock::now()).count();
    if (left <= 0) fail(fmt::format("it has not within {} s", timeout_.count() / 1000.0));
    pollfd waited{.fd = connection_.get(), .events = events, .revents = 0};
    const int ready = ::poll(&waited, 1, static_cast<int>(std::min<int64_t>(left, 60'000)));
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR) fail(std::strerror(errno));
  }
}

void ChildProgram::send(std::string_view bytes) {
  while (!bytes.empty()) {
    wait_for(POLLOUT);
    const ssize_t sent =
        ::send(connection_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (errno != EINTR && errno != EAGAIN) {
      // Its last words may still be there to be read: they say more than this does.
      return;
    }
  }
}

void ChildProgram::receive() {
  char buffer[1 << 16];
  for (;;) {
    wait_for(POLLIN);
    const ssize_t count = ::recv(connection_.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
    if (count > 0) {
      received_.append(buffer, static_cast<size_t>(count));
      return;
    }
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    break;
  }
  // Its output is closed, so it has ended or is about to.
  std::string why = ending();
  while (why.empty() && Clock::now() < until_) {
    std::this_thread::sleep_for(milliseconds(2));
    why = ending();
  }
  fail(why.empty() ? "it has closed its output" : why);
}

std::string ChildProgram::ask(const std::string& request) {
  until_ = Clock::now() + timeout_;
  send(request + "\n");
  size_t end = received_.find('\n');
  for (size_t looked = 0; end == received_.npos; end = received_.find('\n', looked)) {
    looked = received_.size();
    if (looked > kLongestLine) fail("its line is longer than 64 KiB");
    receive();
  }
  std::string line = received_.substr(0, end);
  received_.erase(0, end + 1);
  return line;
}

void ChildProgram::read(std::span<std::byte> into) {
  while (!into.empty()) {
    if (received_.empty()) receive();
    const size_t count = std::min(into.size(), received_.size());
    std::memcpy(into.data(), received_.data(), count);
    received_.erase(0, count);
    into = into.subspan(count);
  }
}

}  // namespace lockstep::train
