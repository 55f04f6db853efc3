#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "tests/launcher/launch/launched.h"

namespace lockstep::launcher {

/// Hosts within this machine: namespaces with a network and a name of their own, joined by a
/// bridge. They share files and memory. They end with the object, after five minutes at the latest.
class SimulatedHosts {
 public:
  /// `folder`: for a file of this class.
  SimulatedHosts(int count, const std::filesystem::path& folder) {
    const std::filesystem::path ready = folder / "hosts";
    keeper_.reset(new Launched(Launched::of(
        {"/bin/sh", "-c", "exec unshare --user --map-root-user --net sh -c \"$0\" hosts \"$@\"",
         kScript, std::to_string(count), ready.string()},
        folder)));
    const auto ended = [&] { return !runs(keeper_->pid()); };
    if (!comes_true([&] { return std::filesystem::exists(ready) || ended(); }) || ended()) {
      const std::string errors = keeper_->end().errors;
      why_not_ = "no hosts within this machine, which need ip and unshare --net: " +
                 errors.substr(0, errors.find('\n'));
      return;
    }
    std::istringstream processes(file_content(ready));
    for (int process = 0; processes >> process;) processes_.push_back(process);
  }

  /// Why there are none; empty if there are.
  const std::string& why_not() const { return why_not_; }
  static std::string address(int host) { return fmt::format("10.78.0.{}", host + 1); }
  /// Shell words in front of a command that is to run on a host.
  std::string on(int host) const {
    return fmt::format("nsenter --user --net --uts --preserve-credentials --target {}",
                       processes_.at(static_cast<size_t>(host)));
  }
  /// Nothing arrives at this host from now on, nor leaves it.
  void cut_off(int host) const {
    const std::string command = on(host) + " ip link set eth0 down";
    ASSERT_EQ(std::system(command.c_str()), 0);
  }

 private:
  /// A process keeps the namespaces of each host; their numbers are in the file at the end.
  static constexpr const char* kScript = R"sh(
    set -e
    ip link add hosts type bridge
    ip link set hosts up
    here=$(readlink /proc/$$/ns/net)
    i=0
    while [ $i -lt "$1" ]; do
      unshare --net --uts sh -c "hostname node$i && ip link set lo up && exec sleep 300" &
      process=$!
      until [ "$(readlink /proc/$process/exe)" = "$(readlink -f "$(command -v sleep)")" ]; do
        kill -0 $process
        sleep 0.01
      done
      ip link add link$i type veth peer name eth0 netns $process
      ip link set link$i master hosts up
      i=$((i + 1))
      nsenter --target $process --net sh -c "ip addr add 10.78.0.$i/24 dev eth0 && ip link set eth0 up"
      processes="$processes $process"
    done
    echo $processes >"$2.part"
    mv "$2.part" "$2"
    exec sleep 300
  )sh";

  std::string why_not_;
  std::vector<int> processes_;
  std::unique_ptr<Launched> keeper_;
};

}  // namespace lockstep::launcher
