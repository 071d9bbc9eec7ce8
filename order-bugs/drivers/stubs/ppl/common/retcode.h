// In place of ppl.common: what ppl.cv's copymakeborder.cu needs of it.
#pragma once
namespace ppl {
namespace common {
enum RetCode { RC_SUCCESS, RC_INVALID_VALUE, RC_DEVICE_MEMORY_ERROR, RC_DEVICE_RUNTIME_ERROR };
}
}  // namespace ppl
