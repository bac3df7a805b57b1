// What the values of options are called: by flags, in JSON and in a picture's text.
#pragma once

#include "app/flags/flag_values.h"
#include "braid/adapter.h"
#include "braid/memory.h"
#include "braid/numbers.h"

namespace braid {

inline const Choices<Dtype> kDtypes = {{"auto", Dtype::kAuto},
                                       {"float32", Dtype::kFloat32},
                                       {"bfloat16", Dtype::kBfloat16},
                                       {"float16", Dtype::kFloat16}};
// "auto" is none of these: it leaves the form to a budget.
inline const Choices<Quantize> kQuantizeForms = {{"none", Quantize::kNone},
                                                 {"int8", Quantize::kInt8},
                                                 {"int8-v1", Quantize::kInt8V1},
                                                 {"int8-dynamic", Quantize::kInt8Dynamic},
                                                 {"fp8", Quantize::kFloat8}};
inline const Choices<OffloadMode> kOffloadModes = {{"none", OffloadMode::kNone},
                                                   {"model", OffloadMode::kModel},
                                                   {"block", OffloadMode::kBlock},
                                                   {"leaf", OffloadMode::kLeaf},
                                                   {"sequential", OffloadMode::kSequential}};
inline const Choices<Residency> kResidencies = {{"strided", Residency::kStrided},
                                                {"leading", Residency::kLeading}};
inline const Choices<Pin> kPins = {
    {"always", Pin::kAlways}, {"on-the-fly", Pin::kOnTheFly}, {"never", Pin::kNever}};
inline const Choices<DiskReads> kDiskReads = {
    {"auto", DiskReads::kAuto}, {"direct", DiskReads::kDirect}, {"mapped", DiskReads::kMapped}};
inline const Choices<AdapterMode> kAdapterModes = {{"auto", AdapterMode::kAuto},
                                                   {"fused", AdapterMode::kFused},
                                                   {"unmerged", AdapterMode::kUnmerged},
                                                   {"beside", AdapterMode::kUnmerged}};

}  // namespace braid
