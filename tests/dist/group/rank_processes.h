#pragma once

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "dist/rendezvous/socket.h"
#include "dist/rendezvous/store_control.h"
#include "tests/core/base/child_process.h"
#include "tests/dist/rendezvous/store_job.h"

namespace lockstep::dist {

/// Ranks of a job as processes, each of which reports the failure that it is notified of. The
/// destructor kills all of them; they also die with this process.
class RankProcesses {
 public:
  /// Runs the store's server in rank 0 or in a separate process.
  RankProcesses(int size, bool with_server) : size_(size) {
    std::string address;
    if (!with_server) {
      server_ = start([&](int, int report) {
        StoreServerOptions options = StoreJob::server_options(size_);
        options.rank = -1;
        const StoreServer server(options);
        write_line(report, server.address());
        (void)pause();
      });
      address = read_line(server_);
    }
    for (int rank = 0; rank < size; ++rank) {
      ranks_.push_back(start([&](int command, int report) {
        std::unique_ptr<StoreServer> server;
        if (with_server && rank == 0) {
          server = std::make_unique<StoreServer>(StoreJob::server_options(size_));
          address = server->address();
          write_line(report, address);
        }
        serve(StoreJob::rank_options(rank, size_, address), command, report);
      }));
      if (with_server && rank == 0) address = read_line(ranks_[0]);
    }
    for (const Process& rank : ranks_) EXPECT_EQ(read_line(rank), "joined");
  }
  ~RankProcesses() {
    ranks_.push_back(std::move(server_));
    for (const Process& process : ranks_) {
      if (process.pid <= 0) continue;
      EXPECT_EQ(::kill(process.pid, SIGKILL), 0);
      EXPECT_EQ(waitpid(process.pid, nullptr, 0), process.pid);
    }
  }
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  pid_t pid(int rank) const { return at(rank).pid; }
  pid_t server_pid() const { return server_.pid; }
  void kill(int rank, int signal) const { EXPECT_EQ(::kill(pid(rank), signal), 0); }
  void kill_server() const { EXPECT_EQ(::kill(server_.pid, SIGKILL), 0); }
  /// Sends a command. 'x': exit without leaving the job; 'f': report a failure, then exit; 'o':
  /// reply "ok" if no failure is known; 's': as 'o', after a round trip to the server; 'k': fork a
  /// child that outlives the command; 'p': post 32 MiB to rank 1.
  void tell(int rank, char command) const {
    EXPECT_EQ(::write(at(rank).command.get(), &command, 1), 1);
  }
  /// Waits for the failure that the rank is notified of. Returns it as "rank: text".
  std::string failure(int rank) const { return read_line(at(rank)); }
  std::string ask(int rank, char command) const {
    tell(rank, command);
    return read_line(at(rank));
  }
  pid_t fork_in(int rank) const { return std::stoi(ask(rank, 'k')); }

 private:
  struct Process {
    pid_t pid = 0;
    Descriptor command;
    Descriptor report;
  };

  const Process& at(int rank) const { return ranks_[static_cast<size_t>(rank)]; }

  template <class Body>
  static Process start(const Body& body) {
    int command[2] = {-1, -1};
    int report[2] = {-1, -1};
    EXPECT_EQ(pipe(command), 0);
    EXPECT_EQ(pipe(report), 0);
    const pid_t pid = fork_when_idle();
    if (pid == 0) {
      alarm(30);
      (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
      close(command[1]);
      close(report[0]);
      try {
        body(command[0], report[1]);
      } catch (const std::exception& error) {
        write_line(report[1], std::string("threw ") + error.what());
      }
      _exit(1);
    }
    close(command[0]);
    close(report[1]);
    if (pid < 0) throw std::runtime_error("cannot fork");  // so that no signal goes to process -1
    return {pid, Descriptor(command[1]), Descriptor(report[0])};
  }

  static void serve(const StoreOptions& options, int command, int report) {
    Store store(options);
    StoreControl control(store);
    store.join();
    control.listen({.on_message = nullptr, .on_failure = [report](const Failure& failure) {
                      write_line(report, std::to_string(failure.rank) + ": " + failure.text);
                    }});
    write_line(report, "joined");
    char what = 0;
    while (::read(command, &what, 1) == 1) {
      if (what == 'f') control.fail("the loader threw");
      if (what == 'f' || what == 'x') _exit(0);
      if (what == 's') store.set("k", "v");
      if (what == 'p') {
        for (int i = 0; i < 512; ++i) {
          control.post(1, std::string(64 << 10, 'x'));
          store.set("k", "v");  // waits until the server has received it
        }
        write_line(report, "posted");
      }
      if (what == 'o' || what == 's') write_line(report, control.failure() ? "failed" : "ok");
      if (what == 'k') {
        const pid_t child = fork();
        if (child == 0) {
          alarm(30);
          (void)pause();
          _exit(0);
        }
        write_line(report, std::to_string(child));
      }
    }
  }

  static void write_line(int fd, const std::string& text) {
    const std::string line = text + "\n";
    if (::write(fd, line.data(), line.size()) != static_cast<ssize_t>(line.size())) _exit(3);
  }
  static std::string read_line(const Process& process) {
    std::string line;
    char next = 0;
    while (wait_for(process.report, false,
                    std::chrono::steady_clock::now() + std::chrono::seconds(10))) {
      if (::read(process.report.get(), &next, 1) != 1) return line + "(ended)";
      if (next == '\n') return line;
      line += next;
    }
    return line + "(nothing for 10 s)";
  }

  int size_;
  std::vector<Process> ranks_;
  Process server_;
};

}  // namespace lockstep::dist
