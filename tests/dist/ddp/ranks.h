#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <barrier>
#include <csignal>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/core/base/child_process.h"

namespace lockstep::dist {

using AllGatherText = std::function<std::vector<std::string>(std::string)>;

/// Runs `body(rank, all_gather)` in one thread per rank, and joins them.
template <class Body>
void run_as_threads(int size, Body body) {
  std::vector<std::string> texts(static_cast<size_t>(size));
  std::barrier all(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      const AllGatherText all_gather = [&, rank](std::string text) {
        texts[static_cast<size_t>(rank)] = std::move(text);
        all.arrive_and_wait();
        std::vector<std::string> result = texts;
        all.arrive_and_wait();
        return result;
      };
      body(rank, all_gather);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

/// Sends a text with its length. Returns false if the socket is closed.
inline bool write_text(int fd, const std::string& text) {
  const uint64_t bytes = text.size();
  return send(fd, &bytes, sizeof(bytes), MSG_NOSIGNAL) == sizeof(bytes) &&
         send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}
inline bool read_text(int fd, std::string& text) {
  uint64_t bytes = 0;
  if (recv(fd, &bytes, sizeof(bytes), MSG_WAITALL) != sizeof(bytes)) return false;
  text.resize(bytes);
  return bytes == 0 || recv(fd, text.data(), bytes, MSG_WAITALL) == static_cast<ssize_t>(bytes);
}

/// Runs `body(rank, all_gather)`, which returns success, in one process per rank. Returns the wait
/// statuses. An alarm kills the processes after 30 s.
template <class Body>
std::vector<int> run_as_processes(int size, Body body) {
  std::vector<int> sockets;
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; ++rank) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    const pid_t child = fork_when_idle();
    if (child == 0) {
      alarm(30);
      for (const int other : sockets) close(other);
      close(ends[0]);
      const AllGatherText all_gather = [&](std::string text) {
        std::vector<std::string> texts(static_cast<size_t>(size));
        bool well = write_text(ends[1], text);
        for (std::string& other : texts) well = well && read_text(ends[1], other);
        if (!well) _exit(3);
        return texts;
      };
      bool well = false;
      try {
        well = body(rank, all_gather);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
      }
      _exit(well ? 0 : 1);
    }
    close(ends[1]);
    sockets.push_back(ends[0]);
    children.push_back(child);
  }
  // One all-gather per round: reads a text from every rank, then sends all texts to every rank.
  // Ends when a rank closes its socket.
  bool going_on = true;
  while (going_on) {
    std::vector<std::string> texts(static_cast<size_t>(size));
    for (size_t i = 0; i < texts.size(); ++i) going_on &= read_text(sockets[i], texts[i]);
    for (size_t i = 0; i < texts.size() && going_on; ++i) {
      for (const std::string& text : texts) write_text(sockets[i], text);
    }
  }
  std::vector<int> statuses;
  for (const pid_t child : children) {
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    statuses.push_back(status);
  }
  for (const int fd : sockets) close(fd);
  return statuses;
}

}  // namespace lockstep::dist
