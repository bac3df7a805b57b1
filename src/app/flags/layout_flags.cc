#include "app/flags/flag_groups.h"

namespace braid {
namespace {

constexpr int kMaxRanks = 1024;

void add_degree(FlagReader& read, const std::string& name, const std::string& help, int& degree) {
  read.text(name, "N", "Layout", help, into(degree, whole_from(1, kMaxRanks)));
}

}  // namespace

const Choices<SharedModulation> kModulations = {{"sharded", SharedModulation::kYes},
                                                {"replicated", SharedModulation::kNo}};
const Choices<TextRanks> kTextRanks = {{"rank0", TextRanks::kFirst}, {"tp", TextRanks::kShared}};
const Choices<DecodeRanks> kDecodeRanks = {{"ranks", DecodeRanks::kAll},
                                           {"rank0", DecodeRanks::kFirst}};
const Choices<RingForm> kRingForms = {{"shift", RingForm::kShift}, {"gather", RingForm::kGather}};

void add_layout_flags(FlagReader& read, Layout& layout) {
  add_degree(read, "--tp",
             "Tensor parallel: ranks share the transformer's weights. The\n"
             "number of ranks is the product of the degrees; they are\n"
             "threads, or the processes of mpirun, torchrun or srun",
             layout.tp);
  add_degree(read, "--ring", "Context parallel: ranks pass keys and values around", layout.ring);
  add_degree(read, "--ulysses", "Context parallel: ranks trade tokens for heads", layout.ulysses);
  add_degree(read, "--cfg-parallel", "Ranks share the branches of true guidance", layout.cfg);
  add_degree(read, "--dp", "Ranks share the pictures", layout.dp);
  add_degree(read, "--layer-split",
             "Ranks keep runs of blocks; pictures follow each other through\n"
             "them, so make several at once",
             layout.layer_split);
  read.text("--tp-modulation", "HOW", "Layout",
            "sharded or replicated: whether tensor parallel ranks share\n"
            "the adaLN layers too. Default: sharded",
            into(layout.modulation, one_of(kModulations)));
  read.text("--text-encoder", "WHERE", "Layout",
            "rank0 (the first rank has the text encoders) or tp (tensor\n"
            "parallel ranks share them). Default: rank0",
            into(layout.text, one_of(kTextRanks)));
  read.text("--vae", "WHERE", "Layout",
            "ranks (tiles, or several pictures, are decoded on all ranks) or\n"
            "rank0 (all on the first). Default: ranks",
            into(layout.decode, one_of(kDecodeRanks)));
  read.text("--ring-form", "FORM", "Layout",
            "shift (blocks of keys and values travel while others are\n"
            "attended) or gather (all at once). Default: shift",
            into(layout.ring_form, one_of(kRingForms)));
  read.text("--deadline", "SECONDS", "Layout",
            "How long a rank waits for the others before all give up.\n"
            "Default: 10",
            [&](const std::string& flag, const std::string& text) {
              layout.deadline = finite_number(flag, text);
              require(layout.deadline > 0, flag, " should be above 0, it is ", text);
            });
}

}  // namespace braid
