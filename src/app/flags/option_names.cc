#include "app/flags/option_names.h"

namespace braid {

const Choices<Dtype>& dtype_names() {
  static const Choices<Dtype> kNames = {{"auto", Dtype::kAuto},
                                        {"float32", Dtype::kFloat32},
                                        {"bfloat16", Dtype::kBfloat16},
                                        {"float16", Dtype::kFloat16}};
  return kNames;
}

const Choices<Quantize>& quantize_names() {
  static const Choices<Quantize> kNames = {{"none", Quantize::kNone},
                                           {"int8", Quantize::kInt8},
                                           {"int8-v1", Quantize::kInt8V1},
                                           {"int8-dynamic", Quantize::kInt8Dynamic},
                                           {"fp8", Quantize::kFloat8}};
  return kNames;
}

const Choices<OffloadMode>& offload_names() {
  static const Choices<OffloadMode> kNames = {{"none", OffloadMode::kNone},
                                              {"model", OffloadMode::kModel},
                                              {"block", OffloadMode::kBlock},
                                              {"leaf", OffloadMode::kLeaf},
                                              {"sequential", OffloadMode::kSequential}};
  return kNames;
}

const Choices<Residency>& residency_names() {
  static const Choices<Residency> kNames = {{"strided", Residency::kStrided},
                                            {"leading", Residency::kLeading}};
  return kNames;
}

const Choices<Pin>& pin_names() {
  static const Choices<Pin> kNames = {
      {"always", Pin::kAlways}, {"on-the-fly", Pin::kOnTheFly}, {"never", Pin::kNever}};
  return kNames;
}

const Choices<DiskReads>& disk_reads_names() {
  static const Choices<DiskReads> kNames = {
      {"auto", DiskReads::kAuto}, {"direct", DiskReads::kDirect}, {"mapped", DiskReads::kMapped}};
  return kNames;
}

}  // namespace braid
