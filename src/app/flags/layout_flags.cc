#include <string_view>

#include "app/flags/flag_groups.h"
#include "base/ascii.h"
#include "comm/mesh.h"
#include "pipeline/deployment/degrees.h"

namespace braid {
namespace {

void add_degree(FlagReader& read, const std::string& name, const std::string& help, int& degree) {
  read.text(name, "N", "Layout", help, into(degree, whole_from(1, kMostRanks)));
}

std::vector<int> shares_of_axis(const std::string& flag, const std::string& axis,
                                const std::string& text) {
  const auto each = text_of("a share in ", flag, " ", axis, "=", text);
  std::vector<int> shares;
  for (const auto& part : split_at(text, ':'))
    shares.push_back(int(whole_number(each, std::string(trimmed(part)), 1, kMostShare)));
  require(shares.size() > 1, flag, " should have a share for each of several ranks, as in ", axis,
          "=3:2, it has one: ", axis, "=", text);
  return shares;
}

// "tp=3:2,ring=1:1"
AxisShares axis_shares(const std::string& flag, const std::string& text) {
  AxisShares shares;
  Choices<std::vector<int>*> axes;
  for (const auto& axis : kAxes)
    if (axis.shares) axes.emplace_back(axis.name, &(shares.*axis.shares));
  for (const auto& part : split_at_commas(text)) {
    const auto equals = part.find('=');
    require(equals != part.npos, flag, " should name axes and their shares, as in tp=3:2, it has ",
            in_quotes(part));
    const std::string axis(trimmed(std::string_view(part).substr(0, equals)));
    auto& of_axis = *choice(flag + "'s axis", axis, axes);
    require(of_axis.empty(), flag, " names ", axis, " twice");
    of_axis = shares_of_axis(flag, axis, part.substr(equals + 1));
  }
  return shares;
}

void take_shares(const std::string& flag, const std::string& text, Layout& layout) {
  layout.shares_fit = text == "auto" ? Fit::kAuto : Fit::kAsAsked;
  layout.shares = text == "auto" ? AxisShares() : axis_shares(flag, text);
}

}  // namespace

const Choices<SharedModulation> kModulations = {{"sharded", SharedModulation::kYes},
                                                {"replicated", SharedModulation::kNo}};
const Choices<TextRanks> kTextRanks = {{"rank0", TextRanks::kFirst}, {"tp", TextRanks::kShared}};
const Choices<DecodeRanks> kDecodeRanks = {{"ranks", DecodeRanks::kAll},
                                           {"rank0", DecodeRanks::kFirst}};
const Choices<RingForm> kRingForms = {{"shift", RingForm::kShift}, {"gather", RingForm::kGather}};
const Choices<Collectives> kCollectives = {{"ordered", Collectives::kOrdered},
                                           {"native", Collectives::kNative}};

void add_layout_flags(FlagReader& read, Layout& layout) {
  add_degree(read, "--tp",
             "Tensor parallelism: ranks share the transformer's weights. The\n"
             "number of ranks is the product of all degrees; they are threads,\n"
             "or the processes that mpirun, torchrun or srun started",
             layout.tp);
  add_degree(read, "--ring", "Context parallelism: ranks pass keys and values around a ring",
             layout.ring);
  add_degree(read, "--ulysses", "Context parallelism: ranks trade tokens for heads",
             layout.ulysses);
  add_degree(read, "--cfg-parallel", "CFG parallelism: ranks split the branches of true guidance",
             layout.cfg);
  add_degree(read, "--dp", "Data parallelism: ranks split the pictures", layout.dp);
  add_degree(read, "--pp,--layer-split",
             "Pipeline parallelism: each rank keeps a run of consecutive blocks; pictures pass\n"
             "through them one after another, so make several at once",
             layout.pp);
  read.text(
      "--shares", "AXIS=A:B,...", "Layout",
      "tp=3:2,ring=1:1: in which proportion the ranks along tp, ring,\n"
      "ulysses, pp or dp take heads, tokens, blocks or pictures, for devices\n"
      "that are not alike; or auto, by their speed in a product that is\n"
      "measured once and kept. Default: alike",
      [&](const std::string& flag, const std::string& text) { take_shares(flag, text, layout); });
  read.text("--tp-modulation", "HOW", "Layout",
            "sharded or replicated: whether tensor-parallel ranks share the\n"
            "adaLN layers, too. Default: sharded",
            into(layout.modulation, one_of(kModulations)));
  read.text("--ring-form", "FORM", "Layout",
            "shift (pass blocks of keys and values on during attention) or\n"
            "gather (collect them all first). Default: shift",
            into(layout.ring_form, one_of(kRingForms)));
  read.text("--collectives", "WHOSE", "Layout",
            "ordered (sums over ranks are the same bits wherever ranks are) or\n"
            "native (NCCL or RCCL sums over GPUs, its own way: pictures differ\n"
            "by rounding). Not measured yet. Default: ordered",
            into(layout.collectives, one_of(kCollectives)));
  read.text("--deadline", "SECONDS", "Layout",
            "How long a rank waits for the others before all give up.\n"
            "Default: 10, 60 where one computes on a GPU, and a minute for\n"
            "processes to start",
            [&](const std::string& flag, const std::string& text) {
              layout.deadline = finite_number(flag, text);
              require(layout.deadline > 0, flag, " should be above 0, it is ", text);
            });
}

void add_text_and_vae_layout_flags(FlagReader& read, Layout& layout) {
  read.text("--text-encoder", "WHERE", "Layout",
            "rank0 (the first rank has the text encoders) or tp (shared by\n"
            "the tensor-parallel ranks). Default: rank0",
            into(layout.text, one_of(kTextRanks)));
  read.text("--vae", "WHERE", "Layout",
            "ranks (decode tiles, or several pictures, on all ranks) or rank0\n"
            "(decode everything on the first). Default: ranks",
            into(layout.decode, one_of(kDecodeRanks)));
}

void add_planned_shares_flag(FlagReader& read, AxisShares& shares) {
  read.text("--shares", "AXIS=A:B,...", "Devices",
            "tp=3:2,ring=1:1: the proportions in layouts with as many ranks along\n"
            "that axis. Default: alike, and for devices that differ also by what\n"
            "they reach in large products",
            [&](const std::string& flag, const std::string& text) {
              require(text != "auto", flag, " auto is measured on devices that are there: plan ",
                      "lists shares by the speed of data sheets without it");
              shares = axis_shares(flag, text);
            });
}

void add_auto_layout_flag(FlagReader& read, Layout& layout) {
  read.text("--layout", "auto", "Layout",
            "Take the degrees that braid plan puts first for the devices at\n"
            "hand, and report them",
            into(layout.fit, one_of(Choices<Fit>{{"auto", Fit::kAuto}})));
}

void check_auto_layout(const Layout& l) {
  if (l.fit != Fit::kAuto) return;
  require(!has_degrees(l), "--layout auto chooses the degrees itself: leave out --tp, --ring, ",
          "--ulysses, --pp, --cfg-parallel and --dp, or leave out --layout");
  require(l.shares == AxisShares{} && l.shares_fit != Fit::kAuto,
          "--layout auto divides alike, so that the same request gives the same picture: leave ",
          "out --shares, or --layout");
}

}  // namespace braid
