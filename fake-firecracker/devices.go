package main

import (
	"encoding/json"
)

// -- balloon

const noBalloon = "No balloon device found."

func (m *machine) getBalloon(settings, string, fields) answer {
	if m.config.Balloon == nil {
		return bad("%s", "Balloon config error: "+noBalloon)
	}
	return found(m.config.Balloon)
}

func (m *machine) patchBalloon(_ settings, _ string, body fields) answer {
	amount := body.number("amount_mib", 0)
	switch {
	case m.config.Balloon == nil:
		return bad("%s", "Balloon update error: "+noBalloon)
	case amount > m.config.MemoryMib:
		return bad("Balloon update error: Amount of pages requested is too large.")
	}
	if err := m.guest.setBalloon(amount); err != nil {
		return bad("Balloon update error: %v", err)
	}
	m.config.Balloon.AmountMib = amount
	return done
}

func (m *machine) patchBalloonStats(_ settings, _ string, body fields) answer {
	every := body.number("stats_polling_interval_s", 0)
	switch {
	case m.config.Balloon == nil:
		return bad("%s", "Balloon update error: "+noBalloon)
	case (every == 0) != (m.config.Balloon.StatsEvery == 0):
		return bad("Balloon update error: Statistics for the balloon device are not enabled or their polling interval can't be changed from or to 0.")
	}
	m.config.Balloon.StatsEvery = every
	return done
}

func (m *machine) balloonStats(settings, string, fields) answer {
	switch {
	case m.config.Balloon == nil:
		return bad("%s", "Internal VMM error: "+noBalloon)
	case m.config.Balloon.StatsEvery == 0:
		return bad("Internal VMM error: Statistics for the balloon device are not enabled")
	}
	actual, err := m.guest.balloonMib()
	if err != nil {
		return bad("Internal VMM error: %v", err)
	}
	target := m.config.Balloon.AmountMib
	return found(map[string]int64{"target_pages": target << 8, "actual_pages": actual << 8, "target_mib": target,
		"actual_mib": actual, "total_memory": m.config.MemoryMib << 20, "free_memory": 0, "available_memory": 0})
}

func (m *machine) hinting(settings, string, fields) answer {
	if m.config.Balloon == nil || !m.config.Balloon.Hinting {
		return bad("Balloon update error: Free page hinting is not enabled.")
	}
	return done
}

func (m *machine) hintingStatus(settings, string, fields) answer {
	if m.config.Balloon == nil || !m.config.Balloon.Hinting {
		return bad("Balloon update error: Free page hinting is not enabled.")
	}
	return found(map[string]any{"host_cmd": 0, "guest_cmd": nil})
}

// -- MMDS

func (m *machine) putMmdsConfig(_ settings, _ string, body fields) answer {
	m.touched = true
	names, _ := body["network_interfaces"].([]string)
	if len(names) == 0 {
		return bad("MMMDS config error: The list of network interface IDs that allow forwarding MMDS requests is empty.")
	}
	for _, name := range names {
		known := false
		for _, n := range m.config.Interfaces {
			known = known || n.ID == name
		}
		if !known {
			return bad("MMMDS config error: The list of network interface IDs provided contains at least one ID that does not correspond to any existing network interface.")
		}
	}
	m.config.MmdsConfig = body
	return done
}

func (m *machine) getMmds(settings, string, fields) answer {
	if m.mmds == nil {
		return found(map[string]any{})
	}
	return found(m.mmds)
}

func (m *machine) putMmds(_ settings, body []byte) answer {
	var next map[string]any
	if err := json.Unmarshal(body, &next); err != nil {
		return bad("An error occurred when deserializing the json body of a request: %v.", err)
	}
	if len(body) > m.mmdsMax {
		return answer{status: 413, fault: "MMDS limit exceeded error: The MMDS patch request doesn't fit."}
	}
	m.mmds = next
	return done
}

func (m *machine) patchMmds(_ settings, body []byte) answer {
	if m.mmds == nil {
		return bad("MMDS error: The MMDS data store is not initialized.")
	}
	var patch map[string]any
	if err := json.Unmarshal(body, &patch); err != nil {
		return bad("An error occurred when deserializing the json body of a request: %v.", err)
	}
	next := mergePatch(m.mmds, patch)
	if text, err := json.Marshal(next); err != nil || len(text) > m.mmdsMax {
		return answer{status: 413, fault: "MMDS limit exceeded error: The MMDS patch request doesn't fit."}
	}
	m.mmds = next
	return done
}

// mergePatch is RFC 7396.
func mergePatch(target any, patch map[string]any) map[string]any {
	next := map[string]any{}
	if old, ok := target.(map[string]any); ok {
		for name, v := range old {
			next[name] = v
		}
	}
	for name, v := range patch {
		switch v := v.(type) {
		case nil:
			delete(next, name)
		case map[string]any:
			next[name] = mergePatch(next[name], v)
		default:
			next[name] = v
		}
	}
	return next
}
