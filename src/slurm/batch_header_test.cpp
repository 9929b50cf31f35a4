// SPDX-License-Identifier: Apache-2.0
#include "slurm/batch_header.h"

#include <gtest/gtest.h>

namespace gflow::slurm {
namespace {

TEST(SlurmBatchHeader, OnlyWhatGbatchDoesIsLeftOut) {
  struct Case {
    const char* line;
    const char* left;
  };
  const Case cases[] = {
      {"#SBATCH --array=1-9", "#SBATCH "},
      {"#SBATCH\t-a 1-2", "#SBATCH\t"},
      {"#SBATCH -a1-2", "#SBATCH "},
      {"#SBATCH --arr=1-2", "#SBATCH "},
      {"#SBATCH -a 1-2 -n 4 -o x", "#SBATCH  -n 4 -o x"},
      {"#SBATCH -n 4 --array '1-2' -o x", "#SBATCH -n 4  -o x"},
      {"#SBATCH --wait", "#SBATCH "},
      {"#SBATCH -W -n 1", "#SBATCH  -n 1"},
      {"#SBATCH -HW", "#SBATCH -H"},
      {"#SBATCH -Wa1-2", "#SBATCH "},
      {"#SBATCH -Q --quiet", "#SBATCH  "},
      {"#SBATCH -G2 --gpus-per-node=v100:2 --gres gpu:1", "#SBATCH   "},
      {"#SBATCH --gpus-per-task=1 --gres-flags=x", "#SBATCH --gpus-per-task=1 --gres-flags=x"},
      {"#SBATCH --wait-all-nodes=1", "#SBATCH --wait-all-nodes=1"},
      {"#SBATCH --account=a -A x-a", "#SBATCH --account=a -A x-a"},
      {"#SBATCH -J x-a # -a 1-2", "#SBATCH -J x-a # -a 1-2"},
      {"#SBATCH -J'x -a 1' -t 1", "#SBATCH -J'x -a 1' -t 1"},
      {"##SBATCH --array=1-9", "##SBATCH --array=1-9"},
      {" #SBATCH --array=1-9", " #SBATCH --array=1-9"}};
  for (const Case& one : cases) {
    const std::string begin = "#!/bin/sh\n\n";
    const std::string rest = "\n#SBATCH -n 2\ncat <<EOF\n#SBATCH --array=1-3\nEOF\n";
    EXPECT_EQ(without_what_gbatch_does(begin + one.line + rest), begin + one.left + rest)
        << one.line;
  }
}

TEST(SlurmBatchHeader, FilesOfTasksHaveTheirNumber) {
  struct Case {
    const char* line;
    const char* made;
  };
  const Case cases[] = {{"#SBATCH -o out_%A_%a.txt", "#SBATCH -o out_%j_7.txt"},
                        {"#SBATCH --output=\"a b/%4a\"", "#SBATCH --output=\"a b/0007\""},
                        {"#SBATCH -e%x-%6A.%%a", "#SBATCH -e%x-%6j.%%a"},
                        {"#SBATCH -J %a --err=%a", "#SBATCH -J %a --err=7"}};
  for (const Case& one : cases) {
    EXPECT_EQ(with_files_of_task(one.line, "7"), one.made) << one.line;
  }
  EXPECT_EQ(with_files_of_task("true\n#SBATCH -o %a\n", "7"), "true\n#SBATCH -o %a\n");
}

}  // namespace
}  // namespace gflow::slurm
