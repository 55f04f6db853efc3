#include "dist/rendezvous/rank_environment.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "tests/core/expect_error.h"

namespace lockstep::dist {
namespace {

using Variables = std::map<std::string, std::string>;

RankEnvironment environment(const Variables& variables, const GivenRank& given = {}) {
  return rank_environment(
      [&](const char* name) {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
      },
      given);
}

template <class... Parts>
void expect_refused(const Variables& variables, const Parts&... parts) {
  expect_error<ConfigError>([&] { (void)environment(variables); }, "[launch] ", parts...);
}

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

const Variables kTorch = {{"RANK", "5"},
                          {"WORLD_SIZE", "8"},
                          {"LOCAL_RANK", "1"},
                          {"LOCAL_WORLD_SIZE", "4"},
                          {"GROUP_RANK", "1"},
                          {"GROUP_WORLD_SIZE", "2"},
                          {"MASTER_ADDR", "alpha"},
                          {"MASTER_PORT", "29500"}};
const Variables kOpenMpi = {
    {"OMPI_COMM_WORLD_RANK", "5"},       {"OMPI_COMM_WORLD_SIZE", "8"},
    {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
    {"OMPI_COMM_WORLD_NODE_RANK", "3"},  {"PMIX_NAMESPACE", "373030913"}};
const Variables kPmi = {
    {"PMI_RANK", "5"}, {"PMI_SIZE", "8"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "4"}};
const Variables kSlurm = {{"SLURM_STEP_ID", "0"},
                          {"SLURM_JOB_ID", "77"},
                          {"SLURM_PROCID", "5"},
                          {"SLURM_NTASKS", "8"},
                          {"SLURM_LOCALID", "1"},
                          {"SLURM_NODEID", "1"},
                          {"SLURM_NNODES", "2"},
                          {"SLURM_STEP_TASKS_PER_NODE", "4(x2)"},
                          {"SLURM_STEP_NODELIST", "n[01-02]"}};

TEST(RankEnvironment, TheNumberOfANodeAndThatOfTheNodesComeFromOneLauncher) {
  const Variables own = {
      {"LOCKSTEP_RANK", "5"}, {"LOCKSTEP_WORLD_SIZE", "8"}, {"LOCKSTEP_NODE_RANK", "0"}};
  const RankEnvironment found = environment(with(kTorch, own));
  EXPECT_EQ(found.node_rank, 0);
  EXPECT_EQ(found.node_count, std::nullopt) << "torchrun numbers nodes in an order of its own";
  EXPECT_EQ(environment(kTorch).node_rank, 1);
  EXPECT_EQ(environment(kTorch).node_count, 2);
}

TEST(RankEnvironment, ASmallerJobOfSeveralTasksANodeIsNoLauncherOfThisOne) {
  Variables fewer = kOpenMpi;
  fewer["OMPI_COMM_WORLD_SIZE"] = "6";
  expect_refused(with(kTorch, fewer), "WORLD_SIZE=8", "OMPI_COMM_WORLD_SIZE=6", "contradict");
  fewer["OMPI_COMM_WORLD_RANK"] = "1";
  fewer["OMPI_COMM_WORLD_SIZE"] = "2";
  fewer["OMPI_COMM_WORLD_LOCAL_RANK"] = "0";
  fewer["OMPI_COMM_WORLD_LOCAL_SIZE"] = "1";
  EXPECT_EQ(environment(with(kTorch, fewer)).size, 8) << "its tasks started the ranks";
}

TEST(RankEnvironment, WithoutALauncherThereIsASingleRank) {
  const RankEnvironment alone = environment({});
  EXPECT_EQ(alone.rank, 0);
  EXPECT_EQ(alone.size, 1);
  EXPECT_EQ(alone.local_rank, 0);
  EXPECT_EQ(alone.local_size, 1);
  EXPECT_EQ(alone.source, "nobody");
  EXPECT_EQ(alone.restart_count, 0);
  EXPECT_EQ(to_string(alone), "rank 0 of 1 (nobody), local rank 0 of 1");
}

TEST(RankEnvironment, TheProcessesOwnEnvironmentCanBeAsked) {
  EXPECT_NO_THROW((void)rank_environment([](const char*) { return std::getenv("LOCKSTEP_NONE"); }));
}

TEST(RankEnvironment, EachLauncherIsUnderstood) {
  const std::map<std::string, Variables> launchers = {{"torchrun's variables", kTorch},
                                                      {"Open MPI's variables", kOpenMpi},
                                                      {"PMI's variables", kPmi},
                                                      {"Slurm's variables", kSlurm}};
  for (const auto& [source, variables] : launchers) {
    const RankEnvironment told = environment(variables);
    EXPECT_EQ(to_string(told), "rank 5 of 8 (" + source + "), local rank 1 of 4");
    EXPECT_EQ(told.source, source);
  }
}

TEST(RankEnvironment, NodesAreKnownWhereTheLauncherNumbersThem) {
  EXPECT_EQ(environment(kTorch).node_rank, 1);
  EXPECT_EQ(environment(kTorch).node_count, 2);
  EXPECT_EQ(environment(kSlurm).node_rank, 1);
  EXPECT_EQ(environment(kSlurm).node_count, 2);
  // Open MPI's "node rank" is a rank on the node.
  EXPECT_EQ(environment(kOpenMpi).node_rank, std::nullopt);
}

TEST(RankEnvironment, LaterSetsThatAgreeFillInWhatTheFirstDidNotTell) {
  const RankEnvironment told = environment(with(kOpenMpi, kSlurm));
  EXPECT_EQ(told.source, "Open MPI's variables");
  EXPECT_EQ(told.node_rank, 1);
  EXPECT_EQ(told.node_count, 2);
  EXPECT_EQ(told.master_address, "n01");
  const RankEnvironment ours = environment(
      with(with(kTorch, kOpenMpi), {{"LOCKSTEP_RANK", "5"}, {"LOCKSTEP_WORLD_SIZE", "8"}}));
  EXPECT_EQ(ours.source, "Lockstep's variables");
  EXPECT_EQ(ours.local_rank, 1);
}

TEST(RankEnvironment, SetsThatContradictEachOtherAreRefusedWithBothVariables) {
  expect_refused(with(kOpenMpi, {{"RANK", "0"}, {"WORLD_SIZE", "8"}}), "RANK=0",
                 "OMPI_COMM_WORLD_RANK=5");
  expect_refused(with(kOpenMpi, {{"RANK", "0"}, {"WORLD_SIZE", "1"}}), "RANK=0",
                 "OMPI_COMM_WORLD_RANK=5");
  expect_refused(with(kTorch, {{"LOCKSTEP_RANK", "5"}, {"LOCKSTEP_WORLD_SIZE", "6"}}),
                 "LOCKSTEP_WORLD_SIZE=6", "WORLD_SIZE=8");
  expect_refused(with(with(kOpenMpi, kPmi), {{"MPI_LOCALRANKID", "2"}}),
                 "OMPI_COMM_WORLD_LOCAL_RANK=1", "MPI_LOCALRANKID=2");
  expect_refused(with(with(kTorch, kSlurm), {{"SLURM_PROCID", "2"}}), "RANK=5", "SLURM_PROCID=2");
}

TEST(RankEnvironment, TasksThatStartedALauncherOnEachNodeAreLeftOut) {
  // srun --ntasks-per-node=1 torchrun
  const Variables one_a_node = {{"SLURM_PROCID", "1"},
                                {"SLURM_NTASKS", "2"},
                                {"SLURM_LOCALID", "0"},
                                {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"}};
  const RankEnvironment torch = environment(with(with(kTorch, kSlurm), one_a_node));
  EXPECT_EQ(to_string(torch), "rank 5 of 8 (torchrun's variables), local rank 1 of 4");
  // mpirun in an allocation: its daemons are a step of one task on each of the other nodes.
  const RankEnvironment mpi =
      environment(with(with(kOpenMpi, kSlurm), {{"SLURM_PROCID", "0"},
                                                {"SLURM_NTASKS", "1"},
                                                {"SLURM_LOCALID", "0"},
                                                {"SLURM_STEP_TASKS_PER_NODE", "1"},
                                                {"SLURM_NODEID", "0"}}));
  EXPECT_EQ(to_string(mpi), "rank 5 of 8 (Open MPI's variables), local rank 1 of 4");
  EXPECT_EQ(mpi.master_address, "");
  // mpirun -N 1 torchrun
  const RankEnvironment nested = environment(with(kTorch, {{"OMPI_COMM_WORLD_RANK", "1"},
                                                           {"OMPI_COMM_WORLD_SIZE", "2"},
                                                           {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                                                           {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}}));
  EXPECT_EQ(nested.rank, 5);
}

TEST(RankEnvironment, SlurmCountsInAStepAlone) {
  Variables batch = kSlurm;
  batch.erase("SLURM_STEP_ID");
  EXPECT_EQ(environment(batch).size, 1);
  EXPECT_EQ(environment(batch).source, "nobody");
}

TEST(RankEnvironment, TheStepsNumberOfTasksComesBeforeTheJobs) {
  EXPECT_EQ(environment(with(kSlurm, {{"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_NTASKS", "16"}})).size,
            8);
}

TEST(RankEnvironment, SlurmsNodesMayHaveDifferentNumbersOfTasks) {
  const Variables uneven =
      with(kSlurm, {{"SLURM_STEP_TASKS_PER_NODE", "3,5"}, {"SLURM_NODEID", "1"}});
  EXPECT_EQ(environment(uneven).local_size, 5);
  expect_error<ConfigError>(
      [&] {
        (void)environment(with(kSlurm, {{"SLURM_STEP_TASKS_PER_NODE", "4(x2"}}));
      },
      "4(x2", "SLURM_STEP_TASKS_PER_NODE");
}

TEST(RankEnvironment, IncompleteSetsAreRefused) {
  expect_refused({{"RANK", "3"}}, "torchrun's variables", "RANK=3", "no number of ranks");
  expect_refused({{"WORLD_SIZE", "3"}}, "WORLD_SIZE=3", "no rank");
  expect_refused({{"LOCAL_RANK", "1"}}, "LOCAL_RANK=1");
  expect_refused({{"OMPI_COMM_WORLD_SIZE", "2"}}, "Open MPI's variables");
  expect_refused(with(kTorch, {{"PMI_RANK", "5"}}), "PMI_RANK=5");
  expect_refused({{"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "1"}}, "SLURM_PROCID=1");
  expect_refused({{"LOCKSTEP_LOCAL_RANK", "1"}}, "Lockstep's variables");
}

TEST(RankEnvironment, VariablesThatAreEmptyCountAsNotSet) {
  EXPECT_EQ(environment({{"RANK", ""}, {"WORLD_SIZE", ""}, {"MASTER_PORT", ""}}).source, "nobody");
}

TEST(RankEnvironment, MalformedNumbersAreRefusedWithTheirVariable) {
  for (const char* text : {"abc", "-1", "1.5", "0x3", " 1", "1 ", "99999999999", "+1"}) {
    expect_refused(with(kTorch, {{"RANK", text}}), "RANK=\"" + std::string(text) + "\"");
  }
  expect_refused(with(kTorch, {{"MASTER_PORT", "65536"}}), "MASTER_PORT=65536");
  expect_refused(with(kTorch, {{"MASTER_PORT", "0"}}), "MASTER_PORT=0");
  expect_refused(with(kTorch, {{"TORCHELASTIC_RESTART_COUNT", "x"}}), "TORCHELASTIC_RESTART_COUNT");
}

TEST(RankEnvironment, RanksThatAreNotLessThanTheirNumberAreRefused) {
  expect_refused(with(kTorch, {{"RANK", "8"}}), "RANK=8", "WORLD_SIZE=8");
  expect_refused(with(kTorch, {{"WORLD_SIZE", "0"}, {"RANK", "0"}}), "WORLD_SIZE=0");
  expect_refused(with(kTorch, {{"LOCAL_RANK", "4"}}), "LOCAL_RANK=4", "LOCAL_WORLD_SIZE=4");
  expect_refused(with(kTorch, {{"LOCAL_WORLD_SIZE", "9"}}), "LOCAL_WORLD_SIZE=9", "WORLD_SIZE=8");
}

TEST(RankEnvironment, WhatIsGivenComesFirstAndEndsTheSearch) {
  const Variables broken = with(kTorch, {{"RANK", "abc"}});
  const RankEnvironment told = environment(broken, {.rank = 1, .size = 2});
  EXPECT_EQ(told.rank, 1);
  EXPECT_EQ(told.size, 2);
  EXPECT_EQ(told.local_rank, std::nullopt);
  EXPECT_EQ(told.source, "the command line");
  EXPECT_EQ(told.master_address, "alpha");
  const RankEnvironment local = environment(kTorch, {.local_rank = 3, .master_address = "beta"});
  EXPECT_EQ(local.rank, 5);
  EXPECT_EQ(local.local_rank, 3);
  EXPECT_EQ(local.master_address, "beta");
  const auto refused = [](const GivenRank& given) {
    expect_error<ConfigError>([&] { (void)environment({}, given); }, "[launch] ");
  };
  refused({.rank = 1});
  refused({.size = 0});
  refused({.rank = 2, .size = 2});
  refused({.rank = -1, .size = 2});
  refused({.master_port = 70000});
}

TEST(RankEnvironment, ASizeAloneMustAgreeWithTheLaunchersOrLeavesTheRankOpen) {
  const RankEnvironment told = environment(kTorch, {.size = 8});
  EXPECT_EQ(told.rank, 5);
  EXPECT_TRUE(told.numbered);
  expect_error<ConfigError>([] { (void)environment(kTorch, {.size = 4}); }, "[launch] ",
                            "WORLD_SIZE=8 and --ranks=4 contradict each other");
  const RankEnvironment open = environment({}, {.size = 4, .master_address = "alpha"});
  EXPECT_FALSE(open.numbered);
  EXPECT_EQ(open.size, 4);
  EXPECT_EQ(open.source, "the command line");
  EXPECT_TRUE(environment({}, {.size = 1}).numbered);
}

TEST(RankEnvironment, APodsIndexIsItsRankIfTheNumberOfRanksIsTold) {
  const Variables pod = {{"JOB_COMPLETION_INDEX", "3"}, {"KUBERNETES_SERVICE_HOST", "10.0.0.1"}};
  const Variables size = {{"LOCKSTEP_WORLD_SIZE", "4"}};
  for (const RankEnvironment& told :
       {environment(with(pod, size)), environment(with(pod, {{"WORLD_SIZE", "4"}})),
        environment(pod, {.size = 4})}) {
    EXPECT_EQ(told.rank, 3);
    EXPECT_EQ(told.size, 4);
    EXPECT_EQ(told.source, "Kubernetes' variables");
    EXPECT_EQ(told.local_rank, std::nullopt);
    EXPECT_TRUE(told.in_kubernetes);
    EXPECT_FALSE(told.under_mpi);
  }
  // An index alone may tell the runs of a sweep apart.
  EXPECT_EQ(environment(pod).size, 1);
  // torchrun in a pod numbers its own ranks.
  EXPECT_EQ(environment(with(pod, kTorch)).rank, 5);
  expect_refused(with(pod, {{"LOCKSTEP_WORLD_SIZE", "3"}}),
                 "JOB_COMPLETION_INDEX=3 is not less than LOCKSTEP_WORLD_SIZE=3");
}

TEST(RankEnvironment, RanksThatALauncherOfMpiProgramsStartedAreToldApart) {
  EXPECT_TRUE(environment(kOpenMpi).under_mpi);
  EXPECT_TRUE(environment(kPmi).under_mpi);
  EXPECT_FALSE(environment(kTorch).under_mpi);
  EXPECT_FALSE(environment(kSlurm).under_mpi);
  EXPECT_TRUE(environment(with(kSlurm, {{"PMIX_RANK", "5"}})).under_mpi);
  EXPECT_TRUE(environment(with(kTorch, kOpenMpi)).under_mpi);
  // One mpirun rank on each node runs torchrun, whose ranks MPI does not know.
  const Variables agents = {{"OMPI_COMM_WORLD_RANK", "1"},
                            {"OMPI_COMM_WORLD_SIZE", "2"},
                            {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}};
  EXPECT_FALSE(environment(with(kTorch, agents)).under_mpi);
}

TEST(RankEnvironment, ThePortThatTorchrunsAgentKeepsIsLeftToIt) {
  const Variables agent = with(kTorch, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}});
  EXPECT_EQ(environment(kTorch).master_port, 29500);
  EXPECT_EQ(environment(agent).master_port, 29501);
  EXPECT_EQ(environment(with(agent, {{"MASTER_PORT", "65535"}})).master_port, 65534);
  EXPECT_EQ(environment(with(agent, {{"LOCKSTEP_MASTER_PORT", "4000"}})).master_port, 4000);
}

TEST(RankEnvironment, JobsAndTheirRestartsAreTold) {
  EXPECT_EQ(environment(kOpenMpi).job_id, "373030913");
  EXPECT_EQ(environment(kSlurm).job_id, "77.0");
  EXPECT_EQ(environment(with(kOpenMpi, {{"TORCHELASTIC_RUN_ID", "none"}})).job_id, "373030913");
  EXPECT_EQ(environment(with(kOpenMpi, {{"LOCKSTEP_JOB_ID", "j"}})).job_id, "j");
  EXPECT_EQ(environment(with(kSlurm, {{"SLURM_RESTART_COUNT", "2"}})).restart_count, 2);
  EXPECT_EQ(environment(with(kTorch, {{"TORCHELASTIC_RESTART_COUNT", "3"},
                                      {"LOCKSTEP_RESTART_COUNT", "1"}}))
                .restart_count,
            1);
}

TEST(RankEnvironment, EveryVariableOfASetIsRead) {
  const RankEnvironment ours = environment({{"LOCKSTEP_RANK", "5"},
                                            {"LOCKSTEP_WORLD_SIZE", "8"},
                                            {"LOCKSTEP_LOCAL_RANK", "1"},
                                            {"LOCKSTEP_LOCAL_WORLD_SIZE", "4"},
                                            {"LOCKSTEP_NODE_RANK", "1"},
                                            {"LOCKSTEP_NODE_COUNT", "2"},
                                            {"LOCKSTEP_MASTER_ADDR", "alpha"}});
  EXPECT_EQ(to_string(ours), "rank 5 of 8 (Lockstep's variables), local rank 1 of 4");
  EXPECT_EQ(ours.node_rank, 1);
  EXPECT_EQ(ours.node_count, 2);
  EXPECT_EQ(ours.master_address, "alpha");
  Variables slurm = kSlurm;
  for (const char* name : {"SLURM_NTASKS", "SLURM_NNODES", "SLURM_STEP_TASKS_PER_NODE"}) {
    slurm.erase(name);
  }
  const RankEnvironment step = environment(with(
      slurm,
      {{"SLURM_NPROCS", "8"}, {"SLURM_STEP_NUM_NODES", "2"}, {"SLURM_TASKS_PER_NODE", "3,5"}}));
  EXPECT_EQ(to_string(step), "rank 5 of 8 (Slurm's variables), local rank 1 of 5");
  EXPECT_EQ(step.node_count, 2);
  EXPECT_EQ(step.master_address, "n01");
}

TEST(RankEnvironment, WithoutItsNodesNumberATaskKnowsTheirNumberWhereItIsTheSame) {
  Variables slurm = kSlurm;
  slurm.erase("SLURM_NODEID");
  slurm.erase("SLURM_NNODES");
  EXPECT_EQ(environment(slurm).local_size, std::nullopt) << "of two nodes";
  slurm["SLURM_STEP_TASKS_PER_NODE"] = "8";
  EXPECT_EQ(environment(slurm).local_size, 8);
  slurm["SLURM_STEP_TASKS_PER_NODE"] = "4(x2)";
  slurm["SLURM_NODEID"] = "2";
  EXPECT_EQ(environment(slurm).local_size, std::nullopt) << "there is no third node";
}

TEST(RankEnvironment, RefusalsSayWhatIsWrong) {
  const auto refused_given = [](const GivenRank& given, const std::string& text) {
    expect_error<ConfigError>([&] { (void)environment({}, given); }, text);
  };
  refused_given({.local_rank = -1}, "[launch] --local-rank -1: expected 0 or more.");
  refused_given({.local_size = -2}, "[launch] --local-size -2: expected 0 or more.");
  refused_given({.rank = 1},
                "[launch] --rank 1 is given without the number of ranks: expected --ranks, too.");
  refused_given({.rank = 2, .size = 2},
                "[launch] the command line: --rank=2 is not less than --ranks=2. Ranks count from "
                "0.");
  refused_given({.size = 0}, "[launch] --ranks=0: expected at least 1.");
  refused_given({.master_port = 70000},
                "[launch] --master-port=70000: expected a port from 1 to 65535.");
  refused_given({.rank = 1, .size = 2, .local_rank = 2, .local_size = 2},
                "[launch] the command line: --local-rank=2 is not less than --local-size=2.");
  expect_refused(with(kTorch, {{"RANK", "x"}}),
                 "RANK=\"x\" is set: expected a number, 0 or more. Unset it or mend it.");
  expect_refused({{"RANK", "3"}},
                 "torchrun's variables are incomplete: RANK=3 is set, but no number of ranks. Set "
                 "or unset them all.");
  expect_refused({{"WORLD_SIZE", "3"}}, "WORLD_SIZE=3 is set, but no rank. Set");
  expect_refused(with(kTorch, {{"LOCAL_WORLD_SIZE", "9"}}),
                 "torchrun's variables: LOCAL_WORLD_SIZE=9 is more than WORLD_SIZE=8.");
  expect_refused(with(kOpenMpi, {{"RANK", "0"}, {"WORLD_SIZE", "8"}}),
                 "RANK=0 and OMPI_COMM_WORLD_RANK=5 contradict each other: two launchers left "
                 "their variables. Unset those that are not meant.");
  EXPECT_EQ(environment(with(kTorch, {{"MASTER_PORT", "1"}})).master_port, 1);
  EXPECT_EQ(environment(with(kTorch, {{"MASTER_PORT", "65535"}})).master_port, 65535);
}

TEST(RankEnvironment, AJobIsNamedByTheFirstThatNamesIt) {
  EXPECT_EQ(environment({}).job_id, "");
  EXPECT_EQ(environment({{"SLURM_JOB_ID", "7"}}).job_id, "7");
  EXPECT_EQ(environment({{"SLURM_STEP_ID", "1"}}).job_id, "");
  EXPECT_EQ(environment({{"TORCHELASTIC_RUN_ID", "t"}, {"PMIX_NAMESPACE", "p"}}).job_id, "t");
  EXPECT_EQ(environment({{"TORCHELASTIC_RESTART_COUNT", "4"}}).restart_count, 4);
}

RC_GTEST_PROP(RankEnvironmentProperty, WhateverVariablesSayTheRankIsLessThanTheSizeOrItIsRefused,
              ()) {
  const auto value =
      rc::gen::element<std::string>("", "0", "1", "2", "3", "-1", "x", "1(x2)", "2,1");
  Variables variables;
  for (const Variables& set : {kTorch, kOpenMpi, kPmi, kSlurm}) {
    if (!*rc::gen::arbitrary<bool>()) continue;
    for (const auto& [name, text] : set) {
      if (*rc::gen::inRange(0, 4) != 0) variables[name] = *value;
    }
  }
  try {
    const RankEnvironment told = environment(variables);
    RC_ASSERT(0 <= told.rank && told.rank < told.size);
    // The extra parentheses keep the macro from splitting the || and evaluating both sides.
    RC_ASSERT((!told.local_rank || !told.local_size || *told.local_rank < *told.local_size));
    RC_ASSERT((!told.local_size || *told.local_size <= told.size));
  } catch (const ConfigError&) {
  }
}

}  // namespace
}  // namespace lockstep::dist
