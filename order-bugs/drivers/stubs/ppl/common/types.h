// In place of ppl.common.
#pragma once
