#include "launcher/launch/launch_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "launcher/launch/launch_facts.h"
#include "launcher/launch/launch_options.h"
#include "tests/launcher/words.h"

namespace lockstep::launcher {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

/// A machine of four cores with Open MPI and hosts lsh0 to lsh3.
LaunchFacts machine(int open_mpi = 4) {
  LaunchFacts facts;
  facts.mpirun = "/usr/bin/mpirun";
  facts.open_mpi = open_mpi;
  facts.mpirun_version = open_mpi == 4 ? "4.1.4" : "5.0.3";
  facts.program = "/opt/lockstep";
  facts.host = "here";
  facts.folder = "/home/user";
  facts.cores = 4;
  facts.read = [](const std::string& path) -> std::optional<std::string> {
    if (path == "hosts.txt") return "lsh0 slots=2\nlsh1 slots=2\n";
    if (path == "bad.txt") return "lsh0 slots=2\nlsh1 slats=2\n";
    if (path == "open.txt") return "lsh0\nlsh1\n";
    return std::nullopt;
  };
  facts.find_program = [](const std::string& name,
                          const std::string&) -> std::optional<std::string> {
    if (name == "prog" || name == "other") return "/usr/bin/" + name;
    if (name.starts_with("/")) return name;
    return std::nullopt;
  };
  facts.resolves = [](const std::string& host) { return host.starts_with("lsh"); };
  facts.free_port = [] { return uint16_t{15017}; };
  facts.job_id = "j0b";
  facts.job_secret = "s3cret";
  facts.run_directory = "runs/new";
  return facts;
}

LaunchFacts without_mpirun() {
  LaunchFacts facts = machine();
  facts.mpirun.clear();
  facts.no_mpirun = "no mpirun in PATH";
  return facts;
}

LaunchFacts slurm() {
  LaunchFacts facts = machine();
  facts.srun = "/usr/bin/srun";
  facts.variables = {{"SLURM_JOB_ID", "17"}, {"SLURM_NTASKS", "6"}};
  return facts;
}

LaunchPlan plan(const std::string& line, const LaunchFacts& facts = machine()) {
  return plan_launch(parse_launch_options(words(line)), facts);
}

/// The command without the variables of the job.
std::string command(const std::string& line, const LaunchFacts& facts = machine()) {
  const LaunchPlan planned = plan(line, facts);
  std::string text;
  for (size_t i = 0; i < planned.command.size(); ++i) {
    if (planned.command[i] == "-x" && planned.environment.contains(planned.command[i + 1])) {
      ++i;
      continue;
    }
    text += (text.empty() ? "" : " ") + planned.command[i];
  }
  return text;
}

std::string planning_problem(const std::string& line, const LaunchFacts& facts = machine()) {
  try {
    plan(line, facts);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(LaunchPlan, KeepsRanksOfOneHostOffTheNetworkUnlessToldOtherwise) {
  LaunchFacts facts = machine();
  facts.shared_memory_bytes = uint64_t{64} << 20;
  const auto btl = [&](const std::string& line) {
    return plan(line, facts).launcher_environment["OMPI_MCA_btl"];
  };
  EXPECT_EQ(btl("-np 2 prog"), "self,vader");
  EXPECT_EQ(btl("-np 2 -H localhost:2 prog"), "self,vader");
  EXPECT_EQ(btl("-np 2 -H lsh0,lsh1 prog"), "");
  EXPECT_EQ(btl("-np 2 --mca btl self,tcp prog"), "");
  EXPECT_EQ(btl("-np 9 --oversubscribe prog"), "") << "too little shared memory";
  facts.variables["OMPI_MCA_btl"] = "tcp,self";
  EXPECT_EQ(btl("-np 2 prog"), "");
}

TEST(LaunchPlan, NamesTheFolderOfMpirunsSessionUnlessToldOtherwise) {
  LaunchFacts facts = machine();
  EXPECT_EQ(plan("-np 2 prog", facts).session_base, "/tmp");
  facts.variables["TMPDIR"] = "/scratch";
  EXPECT_EQ(plan("-np 2 prog", facts).session_base, "/scratch");
  EXPECT_EQ(plan("-np 2 --mca orte_tmpdir_base /x prog", facts).session_base, "");
}

TEST(LaunchPlan, ForOpenMpi4) {
  const std::vector<std::pair<const char*, const char*>> rows = {
      {"-np 2 prog a b", "--bind-to none --tag-output --mca state_base_verbose 5 -np 2 prog a b"},
      {"prog", "--bind-to none --tag-output --mca state_base_verbose 5 -np 4 prog"},
      {"-N 2 -H lsh0:2,lsh1:2 prog",
       "-N 2 --bind-to none --tag-output --mca state_base_verbose 5 -np 4 --host lsh0:2,lsh1:2 "
       "prog"},
      {"--nnodes 2 --nproc-per-node 2 --hostfile hosts.txt prog",
       "-N 2 --bind-to none --tag-output --mca state_base_verbose 5 -np 4 --host lsh0:2,lsh1:2 "
       "prog"},
      {"--nproc-per-node auto prog",
       "-N 4 --bind-to none --tag-output --mca state_base_verbose 5 -np 4 prog"},
      {"--hostfile hosts.txt prog",
       "--bind-to none --tag-output --mca state_base_verbose 5 -np 4 --hostfile hosts.txt prog"},
      {"--nnodes 1 -H lsh0:2,lsh1:2 prog",
       "--bind-to none --tag-output --mca state_base_verbose 5 -np 2 --host lsh0:2 prog"},
      {"--standalone --nproc-per-node 3 prog",
       "-N 3 --bind-to none --tag-output --mca state_base_verbose 5 -np 3 prog"},
      {"-np 9 --oversubscribe prog",
       "--oversubscribe --bind-to none --tag-output --mca state_base_verbose 5 -np 9 prog"},
      {"-np 2 --map-by ppr:1:package --bind-to package prog",
       "--map-by ppr:1:package --bind-to socket --tag-output --mca state_base_verbose 5 -np 2 "
       "prog"},
      {"-np 2 --rank-by node --report-bindings prog",
       "--bind-to none --rank-by node --report-bindings --tag-output --mca state_base_verbose 5 "
       "-np 2 prog"},
      {"-np 2 --mca btl self --prefix /opt/m prog",
       "--prefix /opt/m --mca btl self --bind-to none --tag-output --mca state_base_verbose 5 -np "
       "2 prog"},
      {"-np 2 -x A -x B=2 --wdir /w prog",
       "--bind-to none --tag-output --mca state_base_verbose 5 -np 2 --wdir /w -x A -x B=2 prog"},
      {"-np 1 prog : -np 2 -H lsh0:3 other z",
       "--bind-to none --tag-output --mca state_base_verbose 5 -np 1 prog : -np 2 --host lsh0:3 "
       "other z"},
      {"-np 2 --display-map prog",
       "--bind-to none --tag-output --mca state_base_verbose 5 --display-map -np 2 prog"},
      // launch handles prefixes, files and time limits itself, except with --exec.
      {"-np 2 --timestamp-output --output-filename d --timeout 9 --merge-stderr-to-stdout prog",
       "--bind-to none --tag-output --mca state_base_verbose 5 -np 2 prog"},
      {"-np 2 --exec --timestamp-output --output-filename d --timeout 9 prog",
       "--bind-to none --timestamp-output --output-filename d --timeout 9 -np 2 prog"},
      {"-np 2 --exec prog", "--bind-to none -np 2 prog"},
  };
  for (const auto& [line, expected] : rows) {
    EXPECT_EQ(command(line), "/usr/bin/mpirun " + std::string(expected)) << line;
  }
}

TEST(LaunchPlan, ForOpenMpi5) {
  const std::vector<std::pair<const char*, const char*>> rows = {
      {"-np 2 prog", "--bind-to none --output tag -np 2 prog"},
      {"-np 9 --oversubscribe prog",
       "--map-by :OVERSUBSCRIBE --bind-to none --output tag -np 9 prog"},
      {"-np 9 --oversubscribe --map-by node prog",
       "--map-by node:OVERSUBSCRIBE --bind-to none --output tag -np 9 prog"},
      {"-N 2 -H lsh0:2,lsh1:2 prog",
       "--map-by ppr:2:node --bind-to none --output tag -np 4 --host lsh0:2,lsh1:2 prog"},
      {"-np 2 --bind-to socket --report-bindings prog",
       "--bind-to package --display bindings --output tag -np 2 prog"},
      {"-np 2 --exec --tag-output --output-filename d:nocopy prog",
       "--bind-to none --output tag,file=d:nocopy -np 2 prog"},
  };
  for (const auto& [line, expected] : rows) {
    EXPECT_EQ(command(line, machine(5)), "/usr/bin/mpirun " + std::string(expected)) << line;
  }
}

TEST(LaunchPlan, ForSlurm) {
  const std::vector<std::pair<const char*, const char*>> rows = {
      {"prog", "--ntasks=6 --mpi=pmix --kill-on-bad-exit=1 --cpu-bind=none --label prog"},
      {"-np 4 --nnodes 2 -N 2 --bind-to core --map-by node prog",
       "--ntasks=4 --mpi=pmix --kill-on-bad-exit=1 --ntasks-per-node=2 --nodes=2 --cpu-bind=cores "
       "--distribution=cyclic --label prog"},
      {"-np 4 -H lsh0,lsh1 --oversubscribe -x A -x B=1 --wdir /w prog",
       "--ntasks=4 --mpi=pmix --kill-on-bad-exit=1 --nodelist=lsh0,lsh1 --overcommit "
       "--cpu-bind=none --label --chdir=/w --export=ALL,B=1 prog"},
  };
  for (const auto& [line, expected] : rows) {
    EXPECT_EQ(command(line, slurm()), "/usr/bin/srun " + std::string(expected)) << line;
  }
  EXPECT_EQ(plan("-np 2 --rank-by node --mca a b prog", slurm()).notes.size(), 2);
  EXPECT_THAT(planning_problem("prog : other", slurm()), HasSubstr("srun starts one program"));
}

TEST(LaunchPlan, OfRanksOnThisHostNeedsNoLauncher) {
  const LaunchPlan direct = plan("-np 1 --wdir /w -x A=1 prog x : -np 2 other y", without_mpirun());
  EXPECT_EQ(direct.way, LaunchPlan::Way::kDirect);
  ASSERT_EQ(direct.ranks_here.size(), 3U);
  const LaunchPlan::Process& first = direct.ranks_here[0];
  EXPECT_THAT(first.command, ElementsAre("/usr/bin/prog", "x"));
  EXPECT_EQ(first.working_folder, "/w");
  EXPECT_EQ(first.environment.at("A"), "1");
  const LaunchPlan::Process& last = direct.ranks_here[2];
  EXPECT_THAT(last.command, ElementsAre("/usr/bin/other", "y"));
  EXPECT_EQ(last.rank, 2);
  EXPECT_EQ(last.environment.at("RANK"), "2");
  EXPECT_EQ(last.environment.at("WORLD_SIZE"), "3");
  EXPECT_EQ(last.environment.at("OMPI_COMM_WORLD_LOCAL_RANK"), "2");
  EXPECT_FALSE(last.environment.contains("A"));
  EXPECT_EQ(direct.environment.at("MASTER_PORT"), "15017");
  EXPECT_EQ(direct.environment.at("LOCKSTEP_TRANSPORT"), "tcp");
  EXPECT_THAT(direct.notes, ElementsAre(HasSubstr("no mpirun in PATH")));
  EXPECT_FALSE(plan("-np 1 prog", without_mpirun()).environment.contains("MASTER_PORT"));
}

TEST(LaunchPlan, StartsTheRanksOfThisHostItselfWhereTcpConnectsThem) {
  LaunchFacts facts = machine();
  facts.root = true;  // which mpirun alone refuses
  EXPECT_EQ(plan("--transport tcp -np 2 prog", facts).way, LaunchPlan::Way::kDirect);
  EXPECT_EQ(plan("--transport tcp -np 2 -H here:2 prog", facts).way, LaunchPlan::Way::kDirect);
  EXPECT_THAT(planning_problem("--transport tcp -np 5 prog"), HasSubstr("too few slots"));
  facts = machine();
  EXPECT_EQ(plan("--transport tcp -H lsh0,lsh1 prog").way, LaunchPlan::Way::kMpirun);
  facts.variables = {{"LOCKSTEP_TRANSPORT", "tcp"}};
  EXPECT_EQ(plan("-np 2 prog", facts).way, LaunchPlan::Way::kDirect);
  EXPECT_EQ(plan("--transport mpi -np 2 prog", facts).way, LaunchPlan::Way::kMpirun);
  EXPECT_EQ(plan("--transport tcp -np 2 --bind-to core --mca a b prog").notes.size(), 2U);
}

TEST(LaunchPlan, ThatNeedsALauncherSaysSoWhereThereIsNone) {
  EXPECT_THAT(
      planning_problem("-np 2 -H lsh0:2 prog", without_mpirun()),
      testing::AllOf(HasSubstr("ranks on other hosts need a launcher"), HasSubstr("openmpi-bin")));
  EXPECT_THAT(planning_problem("--transport mpi -np 2 prog", without_mpirun()),
              HasSubstr("ranks that MPI connects need a launcher"));
}

TEST(LaunchPlan, GivesRanksTheJobAndOurOwnVariables) {
  LaunchFacts facts = machine();
  facts.restart = 2;
  facts.variables = {{"LOCKSTEP_TRAIN_STEPS", "5"}, {"HOME", "/"}, {"LOCKSTEP_JOB_ID", "old"}};
  const LaunchPlan planned = plan("-np 2 --max-restarts 3 prog", facts);
  EXPECT_EQ(planned.environment.at("LOCKSTEP_JOB_ID"), "j0b");
  EXPECT_EQ(planned.environment.at("LOCKSTEP_JOB_SECRET"), "s3cret");
  EXPECT_EQ(planned.environment.at("LOCKSTEP_RESTART_COUNT"), "2");
  EXPECT_EQ(planned.environment.at("TORCHELASTIC_RESTART_COUNT"), "2");
  EXPECT_EQ(planned.environment.at("TORCHELASTIC_MAX_RESTARTS"), "3");
  EXPECT_FALSE(planned.environment.contains("RANK"));
  const std::string line = shell_text(planned.command);
  EXPECT_THAT(line, HasSubstr("-x LOCKSTEP_JOB_SECRET -x"));
  EXPECT_THAT(line, HasSubstr("-x LOCKSTEP_TRAIN_STEPS"));
  EXPECT_THAT(line, Not(HasSubstr("s3cret")));  // every user sees command lines
  EXPECT_THAT(line, Not(HasSubstr("HOME")));
  EXPECT_THAT(to_text(planned), Not(HasSubstr("s3cret")));
}

TEST(LaunchPlan, OfARunTrainsInADirectoryOfItsOwn) {
  const LaunchPlan planned = plan("-np 2 a.txtpb b.txtpb --set train.steps=5");
  EXPECT_TRUE(planned.trains);
  EXPECT_EQ(planned.run_directory, "runs/new");
  EXPECT_EQ(shell_text(planned.contexts[0].command),
            "/opt/lockstep train a.txtpb b.txtpb --set train.steps=5 --run-dir runs/new");
}

TEST(LaunchPlan, OfARestartGoesOnInTheSameDirectory) {
  LaunchFacts facts = machine();
  const std::string line = "-np 2 a.txtpb --fresh --run-dir=d";
  EXPECT_EQ(shell_text(plan(line, facts).contexts[0].command),
            "/opt/lockstep train a.txtpb --fresh --run-dir=d");
  facts.restart = 1;
  const LaunchPlan again = plan(line, facts);
  EXPECT_EQ(shell_text(again.contexts[0].command), "/opt/lockstep train a.txtpb --run-dir=d");
  EXPECT_EQ(again.run_directory, "d");
}

TEST(LaunchPlan, OfARestartUsesFewerRanksAndHosts) {
  LaunchFacts facts = machine();
  facts.restart = 1;
  facts.ranks = 2;
  facts.left_out = {"lsh0"};
  const std::string restarts = "--max-restarts 3 --min-ranks 1 ";
  for (const char* hosts : {"-H lsh0:2,lsh1:2", "--hostfile hosts.txt"}) {
    const LaunchPlan planned = plan(restarts + hosts + " -np 4 prog", facts);
    EXPECT_EQ(planned.ranks, 2);
    EXPECT_THAT(shell_text(planned.command), HasSubstr("-np 2 --host lsh1:2 "));
  }
}

TEST(LaunchPlan, OfARunInAnotherFolderFindsItsFiles) {
  const LaunchPlan planned = plan("-np 2 --wdir /w a.txtpb --run-dir d");
  EXPECT_EQ(shell_text(planned.contexts[0].command),
            "/opt/lockstep train /home/user/a.txtpb --run-dir /home/user/d");
  EXPECT_EQ(planned.run_directory, "/home/user/d");
  EXPECT_EQ(shell_text(plan("-np 2 --wdir /w a.txtpb --run-dir=d").contexts[0].command),
            "/opt/lockstep train /home/user/a.txtpb --run-dir=/home/user/d");
  EXPECT_EQ(plan("-np 2 --wdir /w a.txtpb").run_directory, "/home/user/runs/new");
}

TEST(LaunchPlan, RefusesWhatCannotStart) {
  const std::vector<std::pair<const char*, const char*>> rows = {
      {"-np 5 prog", "at most 4 ranks (4 on this host, one a core), got 5. Give --oversubscribe"},
      {"-np 4 -H lsh0:2,lsh1 prog", "at most 3 ranks (2 on lsh0, 1 on lsh1), got 4"},
      {"-np 5 --hostfile hosts.txt prog", "slots=N in the hostfile"},
      {"-np 3 -H lsh0:2 prog : -np 2 -H lsh1:2 other", "at most 4 ranks"},
      {"-np 2 -H lsh0,wrong,gone prog", "wrong, gone do not resolve"},
      {"--hostfile open.txt prog", "number of ranks is not known"},
      {"--hostfile bad.txt -np 2 prog", "bad.txt:2: \"slats=2\""},
      {"--hostfile nofile -np 2 prog", "the hostfile nofile cannot be read"},
      {"--nnodes 3 -H lsh0,lsh1 prog", "--nnodes 3 but 2 hosts are known"},
      {"--min-ranks 3 --max-restarts 1 -np 2 prog", "--min-ranks 3: expected at most the number"},
      {"--min-ranks 1 -np 2 prog", "expected --max-restarts, too"},
      {"--min-ranks 1 --max-restarts 1 prog : other", "which of several programs"},
      {"-np 2 missing", "no program \"missing\""},
      {"-np 2 ./missing", "or by this path"},
  };
  for (const auto& [line, expected] : rows)
    EXPECT_THAT(planning_problem(line), HasSubstr(expected)) << line;
}

TEST(LaunchPlan, ChecksNoMoreThanItKnows) {
  // Slots and programs of other hosts are unknown, as are host names for an agent other than ssh.
  EXPECT_EQ(plan("-np 64 --hostfile open.txt prog").ranks, 64);
  EXPECT_EQ(plan("-np 1 -H lsh0 missing").ranks, 1);
  const LaunchPlan planned = plan("-np 1 -H alias --mca plm_rsh_agent mine prog");
  EXPECT_THAT(planned.notes, ElementsAre(HasSubstr("alias does not resolve")));
  EXPECT_EQ(plan("-np 8 --map-by core:OVERSUBSCRIBE prog").ranks, 8);
}

TEST(LaunchPlan, RunsAsRootOnlyWhenToldTo) {
  LaunchFacts facts = machine();
  facts.root = true;
  EXPECT_THAT(planning_problem("-np 1 prog", facts), HasSubstr("--allow-run-as-root"));
  EXPECT_THAT(shell_text(plan("-np 1 --allow-run-as-root prog", facts).command),
              HasSubstr("mpirun --allow-run-as-root "));
  facts.variables = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"}};
  EXPECT_THAT(planning_problem("-np 1 prog", facts), HasSubstr("_CONFIRM"));
  facts.variables["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = "1";
  EXPECT_EQ(plan("-np 1 prog", facts).ranks, 1);
}

TEST(LaunchPlan, IsNotForARankOfAJob) {
  LaunchFacts facts = machine();
  facts.variables = {{"OMPI_COMM_WORLD_RANK", "3"}};
  EXPECT_THAT(planning_problem("-np 1 prog", facts), HasSubstr("already rank 3 of a job"));
}

TEST(LaunchPlan, QuotesForAShell) {
  EXPECT_EQ(shell_text({"a", "b c", "", "it's", "x=1,y:/2"}), "a 'b c' '' 'it'\\''s' x=1,y:/2");
}

TEST(LaunchFacts, TellOpenMpiFromOthers) {
  EXPECT_EQ(open_mpi_version("mpirun (Open MPI) 4.1.4\n\nReport bugs to"),
            (std::pair<int, std::string>(4, "4.1.4")));
  EXPECT_EQ(open_mpi_version("mpirun (Open MPI) 5.0.3rc1\n"),
            (std::pair<int, std::string>(5, "5.0.3rc1")));
  EXPECT_EQ(open_mpi_version("HYDRA build details:\n    Version: 4.0.2\n"), std::nullopt);
}

}  // namespace
}  // namespace lockstep::launcher
