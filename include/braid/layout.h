// How the work on a picture is shared among devices or threads.
#pragma once

namespace braid {

// What the ranks of a layout are: threads of this process, or the processes that mpirun, torchrun
// or srun started, of which this one is a rank (threads where nobody did).
enum class Ranks { kThreads, kProcesses };

// How one picture is shared among ranks. The product of the degrees is the number of ranks.
struct Layout {
  int tp = 1;                    // tensor parallel: weights are shared
  int ring = 1;                  // context parallel: keys and values are passed around
  int ulysses = 1;               // context parallel: tokens are traded for heads
  int cfg = 1;                   // the branches of true guidance
  int dp = 1;                    // pictures are shared out
  int layer_split = 1;           // runs of blocks; pictures follow each other through them
  bool shard_modulation = true;  // under tp, share the adaLN layers too
  bool shard_text = false;       // under tp, share the text encoders too; else the first rank's
  bool share_decode = true;      // tiles, or several pictures, are decoded on all ranks
  bool gather_keys = false;      // ring: all keys and values at once instead of one block a hop
  double deadline = 10;          // seconds a rank waits for the others before all give up
  Ranks ranks = Ranks::kThreads;
};

}  // namespace braid
